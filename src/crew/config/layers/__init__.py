"""The layers of the configuration, and which of them wins."""

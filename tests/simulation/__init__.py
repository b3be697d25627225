"""The whole crew on a virtual clock."""

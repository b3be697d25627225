"""Commands: the crew."""

"""Commands: channels."""

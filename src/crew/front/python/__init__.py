"""crew from Python."""

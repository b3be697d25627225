"""Commands: undoing."""

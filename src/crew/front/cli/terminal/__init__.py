"""Commands: one task at a terminal."""

"""Commands that clean up and restore work."""

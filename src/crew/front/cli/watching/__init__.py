"""Commands: watching."""

"""How people learn that a question waits."""

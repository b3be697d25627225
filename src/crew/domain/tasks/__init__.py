"""Tasks: what may be asked of them, and what follows when their source is read."""

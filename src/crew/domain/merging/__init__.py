"""The merge queue: what to test, what may land, and how conflicts are settled."""

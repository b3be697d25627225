"""The merge queue: what to test, what may land, and what becomes of a conflict."""

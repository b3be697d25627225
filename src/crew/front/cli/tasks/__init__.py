"""Commands: tasks."""

"""Starts processes, identifies crew's own, and ends them with all their descendants."""

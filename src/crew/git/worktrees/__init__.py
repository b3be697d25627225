"""Worktrees: made, repaired, looked at and removed."""

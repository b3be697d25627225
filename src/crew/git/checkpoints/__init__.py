"""Checkpoints: everything in a worktree, kept as a commit in a hidden ref."""

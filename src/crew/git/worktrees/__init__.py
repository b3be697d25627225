"""Creates, repairs, reads and removes worktrees."""

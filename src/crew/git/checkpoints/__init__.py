"""Takes and restores checkpoints: the content of a worktree as a commit under a hidden ref."""

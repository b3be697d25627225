"""The panes about one task: its text, log, diff, timeline, checkpoints and terminal."""

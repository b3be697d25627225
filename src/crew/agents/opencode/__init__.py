"""The adapter of OpenCode."""

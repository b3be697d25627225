"""OpenCode as an agent."""

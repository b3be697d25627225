"""Codex as an agent."""

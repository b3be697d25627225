"""Reads the crew while it changes: the world by its facts, task texts, logs."""

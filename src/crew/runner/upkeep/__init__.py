"""Cleans up and restores work on request: prune, clean, doctor, restore."""

"""Merges in memory."""

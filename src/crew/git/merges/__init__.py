"""Merges commits in memory, without a checkout."""

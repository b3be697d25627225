"""Reads, checks and edits TOML files in place."""

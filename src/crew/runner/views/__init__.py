"""Rows as people, scripts and other programs see them."""

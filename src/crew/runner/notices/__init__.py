"""Notifies people of open questions."""

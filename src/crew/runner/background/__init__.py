"""Starts runners in the background, for a person and for a manager."""

"""Errors of agent CLIs: what a status means, and what a person can do."""

"""Runs agent CLIs: one adapter for each CLI, and the terminals that people attach to."""

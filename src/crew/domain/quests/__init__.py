"""Quests: stages, roles and items, built on top of runs."""

"""Describes for each program of an agent what it may reach, and reports what is confined here."""

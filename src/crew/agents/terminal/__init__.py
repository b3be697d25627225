"""Terminals that people can watch and type into."""

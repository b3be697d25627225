"""Tests of the store, with real databases."""

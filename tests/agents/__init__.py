"""Tests of the agents layer, with real processes."""

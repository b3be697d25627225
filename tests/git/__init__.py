"""Tests of the git layer, with real repositories."""

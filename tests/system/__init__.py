"""Tests of the floor: files, locks, threads."""

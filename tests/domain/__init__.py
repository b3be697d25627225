"""Tests of the pure core: no files, no clock, no processes but those that are to die."""

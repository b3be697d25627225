"""Folders of gates: what a gate's code left there is deleted before the next gate runs."""

"""Upkeep: the rules of what `crew clean`, `crew prune` and `crew doctor` may remove or fix."""

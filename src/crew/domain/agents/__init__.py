"""Agents: what may be asked of them, what follows, and which task each one gets."""

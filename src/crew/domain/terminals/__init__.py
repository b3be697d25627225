"""Terminals: what may be asked of a task at a terminal, what follows, and what is to be done."""

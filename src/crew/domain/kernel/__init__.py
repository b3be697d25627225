"""The kernel: facts, tables of moves, errors, names and text, used by all of domain."""

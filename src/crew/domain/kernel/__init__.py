"""The kernel: facts, tables of moves, errors, names and text, which all rooms use."""

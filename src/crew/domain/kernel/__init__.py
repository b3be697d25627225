"""What every machine is made of: facts, tables of moves, errors, names and text."""

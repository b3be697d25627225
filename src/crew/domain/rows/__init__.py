"""The rows of all machines: the fields, the states, and the table of moves of each."""

"""The doers: one function for each kind of command; it acts and returns facts."""

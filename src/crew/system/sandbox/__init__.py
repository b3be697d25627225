"""The sandbox of the programs that crew starts: one description, one form for each system."""

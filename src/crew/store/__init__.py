"""The only SQL: facts and rows in one SQLite file."""

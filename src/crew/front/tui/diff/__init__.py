"""A diff for people: read from git's text, as rows of the screen, coloured, with comments."""

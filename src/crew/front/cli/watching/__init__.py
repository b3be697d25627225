"""Commands that show what the crew does, and answer its questions."""

"""What a key does: each action is a command of crew, carried out as a person would type it."""

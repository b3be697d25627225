"""The agent that follows a script, for demos and tests."""

"""The text, program and environment that an agent gets for one step."""

"""The adapter and the program of the scripted agent, for demos and tests."""

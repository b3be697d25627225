"""The command line: one small module for each command, loaded when it is called."""

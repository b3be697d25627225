"""Shows the crew as it changes: the terminal view, the plain frame, plain lines."""

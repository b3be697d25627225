"""The terminal view: a full-screen view of the crew, with every action of the command line."""

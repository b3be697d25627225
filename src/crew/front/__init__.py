"""The interfaces of crew: the command line, MCP and Python; they contain no rules."""

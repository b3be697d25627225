"""What people do themselves next to the agents: attach, look, run a command, diff, review."""

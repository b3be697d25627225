"""What people do themselves next to the agents: attach, run a command, diff, review."""

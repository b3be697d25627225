"""What an agent is given for one step."""

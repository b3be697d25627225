"""Reaches git, agents, gates and files: the protocol of the doers, and this machine."""

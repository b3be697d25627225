"""Attacks: what an agent, a commit or another user does cannot forge, harm or hold up."""

"""Commands about agents and the runner."""

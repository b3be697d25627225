"""Commands about channels."""

"""Commands: setting up."""

"""Commands about one task in the foreground or at its terminal."""

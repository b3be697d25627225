"""What a user may set: layers of TOML, checked once, and data files that ship with crew."""

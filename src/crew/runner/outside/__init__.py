"""Everything the doers may ask of this machine."""

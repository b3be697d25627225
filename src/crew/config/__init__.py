"""The configuration: layers of TOML, checked once, and the data files that crew ships."""

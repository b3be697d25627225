"""TOML files: read, checked and edited in place."""

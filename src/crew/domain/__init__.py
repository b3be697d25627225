"""The pure core: rows, machines and decisions; it does no I/O and reads no clock."""

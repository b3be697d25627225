"""The pure core: rows, machines and decisions, without I/O and without a clock."""

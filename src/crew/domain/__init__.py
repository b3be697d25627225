"""The pure core: values, machines and decisions; it does no I/O and reads no clock."""

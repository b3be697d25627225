"""plan, do, record: the loop and the doers."""

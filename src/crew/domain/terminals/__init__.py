"""Tasks at a terminal: what may be asked, what follows, and what is to be done."""

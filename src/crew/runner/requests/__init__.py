"""How requests reach the runner, and how it answers them."""

"""Where tasks come from: one small module for each source."""

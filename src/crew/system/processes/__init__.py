"""Processes: started, proven to be ours, and ended with everything below them."""

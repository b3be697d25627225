"""Delivery: landed work reaches the target branch and the checkouts that have it."""

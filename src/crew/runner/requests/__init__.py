"""Sends requests to the runner, and checks and answers them."""

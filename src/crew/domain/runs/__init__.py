"""Runs: steps, signals, questions, reviews, and what follows from each."""

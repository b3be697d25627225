"""Delivers landed work to the target branch and to the checkout that shows it."""

"""What may be removed, set back or repaired when people tidy up: the rules, without git."""

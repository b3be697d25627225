"""One function for each command of the plan: it acts and returns facts."""

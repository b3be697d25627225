"""The widgets of the view: a list of lines of any length, and how lines are painted."""

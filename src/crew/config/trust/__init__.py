"""Configuration that comes from a commit: a proposal, which holds once a person has approved it."""

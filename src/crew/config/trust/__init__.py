"""Configuration from commits: a proposal, in effect once a person has approved it."""

"""What people and scripts see; no rules of its own."""

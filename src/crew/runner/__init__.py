"""The runner: plans, carries out commands, records facts, answers requests."""

"""The base below git, agents, tasks and store: processes, file locks and crash points."""

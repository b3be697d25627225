"""The floor below git, agents, tasks and store: files, locks, threads, crash points."""

"""The repository of each task's own, and how crew takes its commits into the main one."""

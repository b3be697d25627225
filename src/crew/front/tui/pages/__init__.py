"""The pages of the view: tasks, agents, inbox, merge queue, channels, cost, workspaces."""

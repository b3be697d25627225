"""The sources of tasks: task files and `tk` tickets, and issues of GitHub."""

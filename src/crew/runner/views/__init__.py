"""The documents that commands and files show: rows, quests, channels and logs as plain data."""

"""Commands about quests and workflows."""

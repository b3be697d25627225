"""Commands: quests."""

"""Channels: members, posts, turns and councils."""

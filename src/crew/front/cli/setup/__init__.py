"""Commands about setup and configuration."""

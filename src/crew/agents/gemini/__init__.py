"""The adapter of Gemini CLI."""

"""The only agent CLIs: processes crew can prove it owns, and one adapter a CLI."""

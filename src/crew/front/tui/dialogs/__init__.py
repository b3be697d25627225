"""The dialogs of the view: confirm, choose, write a text, help, the palette."""

"""Programs that run inside sandboxes. Keju passes their text to Python there."""

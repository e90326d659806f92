"""Lists in pages: page tokens, counts and sizes."""

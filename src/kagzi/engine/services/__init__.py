"""One file a noun that people ask for."""

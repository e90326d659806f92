"""How a session uses its streams, one after the other."""

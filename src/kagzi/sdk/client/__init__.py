"""Kagzi, the client: start runs, wait for them, look at them."""

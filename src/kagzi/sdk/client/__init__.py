"""Kagzi, the client: starts runs, waits for them and inspects them."""

"""API keys, and the audit of what is done with them."""

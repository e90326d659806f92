"""API keys, and the audit of administrative changes."""

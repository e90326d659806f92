"""API keys, and the audit log of administrative changes."""

"""The client without await."""

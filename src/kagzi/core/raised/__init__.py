"""Exceptions on their way to whoever sees them."""

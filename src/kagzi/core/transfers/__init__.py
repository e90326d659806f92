"""Runs that are exported and imported."""

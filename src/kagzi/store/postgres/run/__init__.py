"""Reads and changes of runs on PostgreSQL."""

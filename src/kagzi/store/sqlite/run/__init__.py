"""Reads and changes of runs on SQLite."""

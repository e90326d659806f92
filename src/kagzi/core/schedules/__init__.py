"""Schedules: what they say, and their nominal times."""

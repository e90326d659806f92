"""Schedules: their specifications and nominal times."""

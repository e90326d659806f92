"""Data written to the user's own database in the user's own transaction: effects of steps, and starts of runs."""

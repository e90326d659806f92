"""Background tasks: their supervisor, retention, cascades, chores."""

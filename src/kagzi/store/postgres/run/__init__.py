"""What people ask of a run, and do to it."""

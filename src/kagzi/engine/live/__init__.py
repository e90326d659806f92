"""What people watch while it happens: one run, and the first page of a list of runs."""

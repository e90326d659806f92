"""Live views: of one run, and of the first page of a list of runs."""

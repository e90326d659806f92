"""Log lines of steps: gathered by the worker, for people who look at the run."""

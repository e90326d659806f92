"""Log lines of steps: collected by the worker, shown with the run."""

"""Export and import of runs."""

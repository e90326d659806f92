"""Explains the current state of a run."""

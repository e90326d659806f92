"""Traces: spans of starts, runs and steps, recorded live or built from the history of a run."""

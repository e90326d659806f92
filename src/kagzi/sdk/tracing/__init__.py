"""Traces: spans of starts, runs and steps, made while they happen or from the history of a run."""

"""Traces: span ids that are derived from what is recorded."""

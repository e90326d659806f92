"""Traces: ids of spans that can be told from what is recorded."""

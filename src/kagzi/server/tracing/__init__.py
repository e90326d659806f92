"""Spans of the calls that a server handles. Loaded only if tracing is on."""

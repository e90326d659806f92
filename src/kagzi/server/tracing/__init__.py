"""Spans of the calls that a server answers. Nothing of it is loaded unless a server is to make some."""

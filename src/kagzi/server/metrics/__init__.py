"""Prometheus metrics: the catalogue, the text format and the page."""

"""Metrics for Prometheus: what there is, how it is written, and where it is asked for."""

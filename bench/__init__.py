"""Benchmarks: both stores, real processes, one machine-readable result. Not part of the tests."""

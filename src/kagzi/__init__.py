"""Kagzi: durable execution for Python."""

__version__ = "0.1.0"

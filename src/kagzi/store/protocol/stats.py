"""Figures for charts."""

from typing import Protocol


class StatsVerbs(Protocol):
    """Per minute, kept apart from the runs."""

"""Versions of workflow types."""

from typing import Protocol


class VersionVerbs(Protocol):
    """Which versions there are, which is the default, which take no new runs."""

"""Forgetting what has ended."""

from typing import Protocol


class RetentionVerbs(Protocol):
    """Small batches; live runs are never touched."""

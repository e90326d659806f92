"""Runs taken out of one store and put into another."""

from typing import Protocol


class TransferVerbs(Protocol):
    """A run with its whole history."""

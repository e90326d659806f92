"""What happened to a run, in order."""

from typing import Protocol


class EventVerbs(Protocol):
    """Read by seq; nothing is stored for it."""

"""Workflow types as queues: paused, limited, and how much waits in them."""

from typing import Protocol


class QueueVerbs(Protocol):
    """What an operator says about a type, and how deep its queue is."""

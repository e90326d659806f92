"""Operations on everything a filter matches."""

from typing import Protocol


class BulkVerbs(Protocol):
    """Durable: they go on where they were after a restart."""

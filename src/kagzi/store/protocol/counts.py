"""How long lists are."""

from typing import Protocol

from ...core.pages.counting import Counted


class CountVerbs(Protocol):
    async def count_rows(self, what: Counted, cap: int) -> int:
        """How many rows the list has, on all its pages; at most `cap`: counting stops there."""
        ...

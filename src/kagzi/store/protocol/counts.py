"""The number of rows in a list."""

from typing import Protocol

from ...core.pages.counting import Counted


class CountVerbs(Protocol):
    async def count_rows(self, what: Counted, cap: int) -> int:
        """The number of rows on all pages of a list. Counting stops at `cap`."""
        ...

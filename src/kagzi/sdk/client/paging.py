"""Reads lists page by page, and yields them row by row."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from ...v1.common_pb2 import PageInfo, PageRequest

PAGE_ROWS = 200  # of a reader who may stop at any row
LIMITED_PAGE_ROWS = 1_000  # of one who wants that many


class PageResponse(Protocol):
    """A response with some rows of a list, and where it goes on."""

    @property
    def page(self) -> PageInfo: ...


Page = TypeVar("Page", bound=PageResponse)
Row = TypeVar("Row")


async def all_rows(
    ask: Callable[[PageRequest], Awaitable[Page]], rows_of: Callable[[Page], Iterable[Row]], limit: int | None = None
) -> AsyncIterator[Row]:
    """The rows of one page after the other, at most `limit`. A page is asked for when its first row is."""
    token = ""
    left = limit
    while left is None or left > 0:
        size = PAGE_ROWS if left is None else min(left, LIMITED_PAGE_ROWS)
        answer = await ask(PageRequest(page_size=size, page_token=token))
        for row in rows_of(answer):
            yield row
            left = None if left is None else left - 1
        token = answer.page.next_page_token
        if not token or not answer.page.has_more:
            return

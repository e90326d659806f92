"""Pages of lists: requests, responses, and the tokens between them."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor, decode_cursor, encode_cursor
from ...core.records import Rows, RunOrder, RunRecord
from ...store.protocol import Store

Row = TypeVar("Row")


class PageAsk(msgspec.Struct, frozen=True):
    """`size` 0 is the default size. `count` requests the total, which costs an extra query."""

    size: int = 0
    token: str = ""
    count: bool = False


class Page(msgspec.Struct, Generic[Row], frozen=True):
    rows: tuple[Row, ...]
    next_token: str = ""
    prev_token: str = ""
    has_more: bool = False
    total: int | None = None
    total_is_capped: bool = False


def page_size(ask: PageAsk) -> int:
    if ask.size == 0:
        return limits.PAGE_DEFAULT_ROWS
    if 1 <= ask.size <= limits.PAGE_MAX_ROWS:
        return ask.size
    raise InvalidArgument(
        f"page_size={ask.size} is outside 1..{limits.PAGE_MAX_ROWS}. "
        "Ask for fewer rows and use the page token for the rest.",
        field="page_size",
    )


def page_cursor(ask: PageAsk, bound_to: str) -> Cursor | None:
    return decode_cursor(ask.token, bound_to=bound_to) if ask.token else None


def page_of(rows: Rows[Row], cursor: Cursor | None, bound_to: str, place: Callable[[Row], Cursor]) -> Page[Row]:
    """The page of `rows`, which were read from `cursor`. `place` returns a row's position, as a forward cursor."""
    if not rows.rows:
        return Page(())
    first, last = place(rows.rows[0]), place(rows.rows[-1])
    backwards = cursor is not None and cursor.direction == "prev"
    more_after = backwards or rows.has_more
    more_before = rows.has_more if backwards else cursor is not None
    return Page(
        rows.rows,
        next_token=encode_cursor(last, bound_to=bound_to) if more_after else "",
        prev_token=encode_cursor(Cursor(first.at, first.id, "prev"), bound_to=bound_to) if more_before else "",
        has_more=more_after,
    )


def place_by(order: RunOrder) -> Callable[[RunRecord], Cursor]:
    """The position of a run in a list of runs."""
    if order == "ended":
        return lambda record: Cursor(record.finished_at or 0, record.run.run_id)
    return lambda record: Cursor(record.created_at, record.run.run_id)


async def with_total(page: Page[Row], ask: PageAsk, store: Store, what: Counted) -> Page[Row]:
    """The page, with the length of the whole list if requested. Counting stops at a cap."""
    if not ask.count:
        return page
    total = await store.count_rows(what, limits.COUNT_CAP)
    return msgspec.structs.replace(page, total=total, total_is_capped=total >= limits.COUNT_CAP)

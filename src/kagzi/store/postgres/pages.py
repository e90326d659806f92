"""Pages of lists: see part_bounded_page."""

from ...core import limits
from .connections import Row, Session


async def read_page(session: Session, name: str, *arguments: object, limit: int) -> tuple[list[Row], bool]:
    """At most `limit` rows, and not many more bytes than a page may have; and whether there are more. The statement asks for one
    row more than `limit`."""
    rows = await session.read(name, *arguments, limits.PAGE_BYTES)
    page = list(rows[:limit])
    return page, bool(page) and page[0]["page_rows"] > len(page)

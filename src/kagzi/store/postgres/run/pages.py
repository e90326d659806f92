"""Pages of lists: see part_bounded_page."""

from ....core import limits
from ..connection.connection import Row, Session


async def read_page(session: Session, name: str, shown: int, /, **parameters: object) -> tuple[list[Row], bool]:
    """At most `shown` rows, and not many more bytes than a page may have; and whether there are more. The statement
    asks for one row more than are shown."""
    rows = await session.read(name, **parameters, page_bytes=limits.PAGE_BYTES)
    page = list(rows[:shown])
    return page, bool(page) and page[0]["page_rows"] > len(page)

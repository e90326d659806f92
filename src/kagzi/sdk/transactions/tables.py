"""The tables in the user's database: created if that is allowed, else the error explains how to create them."""

import logging

from ...core.errors import NonRetryable
from .connections import Connection, is_not_permitted
from .statements import parts_of, statements

_log = logging.getLogger("kagzi.transactions")

EFFECTS = "kagzi_effects"
OUTBOX = "kagzi_outbox"
_SHORT = {EFFECTS: "effects", OUTBOX: "outbox"}
_LOCK = 4_846_231_907  # an advisory lock: concurrent creations of a table would fail


def ddl(table: str, dialect: str) -> str:
    """The statements that create a table, for users and their migrations."""
    return statements()[f"create_{_SHORT[table]}_{dialect}"]


async def create(connection: Connection, table: str) -> None:
    """Create it in its own transaction, or in the open one. Raises NonRetryable if that is not allowed."""
    transaction = await connection.begin()
    try:
        if connection.dialect == "postgresql":
            await connection.fetch("SELECT pg_advisory_xact_lock(:lock)", {"lock": _LOCK})
        for statement in parts_of(ddl(table, connection.dialect)):
            await connection.fetch(statement, {})
    except BaseException as error:
        await connection.end(transaction, error)
        if is_not_permitted(error):
            raise NonRetryable(
                f"the table {table} does not exist, and this user of the database may not create it. Create it with "
                f"your migrations: `kagzi {_SHORT[table]} sql` prints the statements."
            ) from error
        raise
    await connection.end(transaction, None)
    _log.info("created the table %s", table)

"""What asyncpg asks PostgreSQL about types is asked once in a test process.

A connection asks about each array type that it meets, with a statement whose plan takes longer than most tests of a
store: a third of their processor time. Types that PostgreSQL brings are the same in every database. Processes that
tests start ask for themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

_FIRST_OF_USERS = 16_384  # the object identifiers below are those of PostgreSQL
_NOTHING_TO_PREPARE_AGAIN = SimpleNamespace(name="described before")


@contextmanager
def types_described_once() -> Iterator[None]:
    describe = asyncpg.Connection._introspect_types
    known: dict[tuple[object, frozenset[int]], Any] = {}

    async def described(connection: asyncpg.Connection, oids: set[int], timeout_s: float | None) -> tuple[Any, Any]:
        key = (connection.get_server_version(), frozenset(oids))
        if key in known:
            return known[key], _NOTHING_TO_PREPARE_AGAIN
        rows, statement = await describe(connection, oids, timeout_s)
        if max(oids) < _FIRST_OF_USERS:
            known[key] = rows
        return rows, statement

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncpg.Connection, "_introspect_types", described)
        yield

"""Manages keys directly in the database, without a server: to create the first key, and to regain access when all keys
are lost. Whoever can open the database has full access anyway."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ...engine.services.keys.audit import Audit
    from ...engine.services.keys.keys import Keys


class Offline(NamedTuple):
    keys: Keys
    audit: Audit


@asynccontextmanager
async def open_offline(url: str) -> AsyncGenerator[Offline]:
    """Migrates the database if necessary, like a server. A SQLite file must not be in use. Raises CannotStart,
    InvalidArgument, SchemaMismatch, Unavailable."""
    from ...engine.services.keys.audit import Audit
    from ...engine.services.keys.keys import Keys
    from ...server.app import Server
    from ...server.config import ServerConfig
    from ...system import SystemClock, SystemIds

    clock, ids = SystemClock(), SystemIds()
    async with Server(ServerConfig(db=url)).store_only() as store:
        audit = Audit(store, clock=clock, ids=ids)
        # Servers on this database notice the change within seconds.
        yield Offline(Keys(store, clock=clock, ids=ids, audit=audit, announce=lambda _: None), audit)

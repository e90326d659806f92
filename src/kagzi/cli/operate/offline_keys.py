"""Keys by way of the database itself, without a server: how the first key is made, and how somebody gets in again who
has lost all of them. Whoever can open the database may do everything anyway."""

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
    """The database is migrated if it has to be, as by a server. A SQLite file must not be in use. Raises CannotStart,
    InvalidArgument, SchemaMismatch, Unavailable."""
    from ...engine.services.keys.audit import Audit
    from ...engine.services.keys.keys import Keys
    from ...server.app import Server
    from ...server.config import ServerConfig
    from ...system import SystemClock, SystemIds

    clock, ids = SystemClock(), SystemIds()
    async with Server(ServerConfig(db=url)).store_only() as store:
        audit = Audit(store, clock=clock, ids=ids)
        # Servers on this database find out by themselves, within seconds.
        yield Offline(Keys(store, clock=clock, ids=ids, audit=audit, announce=lambda _: None), audit)

"""Leaves a server that has lost its database for another one that is ready, if the address names several.

A server without its database stays connected: it waits for the database, and so do its callers. That is right if the
database is down for all servers. It is wrong if only this server cannot reach it; its workers and clients cannot tell
which, so they ask another server. They leave only for one that is ready
(docs/adr/0099-a-server-without-its-database-is-left.md).
"""

import asyncio
from typing import Protocol

from ...core.errors import PreconditionFailed
from ...core.providers import Rng
from .link import Link
from .tries import Backoff

CHECK_S = 2.0
AWAY_S = 3.0
"""How long a database may be away before its server is left."""
_LONGEST_S = 15.0  # between two checks, while no server is ready


class Servers(Protocol):
    """The connection."""

    rng: Rng

    @property
    def link(self) -> Link: ...

    async def leave(self, unready: Link) -> bool: ...


class Leaving:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._watch(), name="kagzi-leaving")

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        backoff = Backoff(self._servers.rng, first_s=CHECK_S / 2, longest_s=_LONGEST_S)
        time = asyncio.get_running_loop().time
        unready: Link | None = None
        since = 0.0
        while True:
            await asyncio.sleep(CHECK_S if unready is None else backoff.next_s())
            try:
                link = self._servers.link
            except PreconditionFailed:  # closed, or used after a fork
                return
            if await link.is_ready() is not False:
                unready = None
                backoff.reset()
            elif link is not unready:
                unready, since = link, time()
            elif time() - since >= AWAY_S and await self._servers.leave(link):
                unready = None
                backoff.reset()

"""The server of a test environment: the real one, on SQLite in memory, without sockets and threads, in virtual time.

The differences from a production server are parameters: clock, ids and rng; a store that works in the thread of the
test and starts as a copy of a database that was migrated once; settings that give the server no periodic work while
weeks of virtual time pass.
"""

import asyncio
import functools
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, ParamSpec, TypeVar

import grpc
import msgspec

from ...core.limits import Settings
from ...core.providers import Rng
from ...core.times import US_PER_MS, US_PER_S, Timestamp
from ...server.app import Server, StoreHarness
from ...server.config import ServerConfig
from ...server.grpc.listener import GrpcListener
from ...server.listen import ListenAddress
from ...store.protocol import Heartbeat, NullBus, PendingWork, TypeKey
from ...store.sqlite import SqliteStore
from ...store.sqlite.connection.connection import MEMORY, Database, DatabaseThread, connect, failure_of
from ...store.sqlite.migrate import apply_migrations
from .clock import SeededIds, SeededRng, VirtualClock
from .guest_loop import GuestLoop

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

_YEAR_MS = 366 * 86_400_000
SETTINGS = Settings(
    lease_ms=_YEAR_MS,  # a test may hold up a body while the clock moves
    heartbeat_ms=_YEAR_MS // 4,
    reconnect_grace_ms=10,  # how soon another worker may take over the runs of a killed one
    retention_ms=100 * _YEAR_MS,
    housekeeping_ms=_YEAR_MS,
    keys_check_ms=_YEAR_MS,
    resident_wait_ms=0,
    jitter=False,
)
_SETTLED_US = 2 * _YEAR_MS * US_PER_MS  # a server ends no leases until it has run for the duration of one


class _SameThread(DatabaseThread):
    """Does calls at once, in the caller's thread. As with a thread, the caller waits for an iteration of its loop."""

    def start(self) -> None:
        self._is_open = True

    _is_open = False

    async def call(self, act: Callable[Arguments, Answer], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        self._require_open()
        self.calls += 1
        try:
            answer = act(*args, **kwargs)
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise failure_of(error) from error
        finally:
            self._done += 1
        await asyncio.sleep(0)
        return answer

    def _require_open(self) -> None:
        if not self._is_open:
            raise RuntimeError("the store of this test environment is closed")

    async def close(self, last: Callable[[], None] | None = None) -> None:
        if self._is_open:
            self._is_open = False
            if last is not None:
                last()


class _Store(SqliteStore):
    """A store in memory: a copy of a migrated database."""

    def __init__(self, clock: VirtualClock, rng: Rng) -> None:
        super().__init__(MEMORY, rng=rng)
        self._clock = clock
        self._writing = self._reading = _SameThread("kagzi-test")

    def _open_database(self) -> Database:
        database = connect(MEMORY)
        with _copying:
            _migrated().copy_to(database)
        return database

    def drop(self) -> None:
        """Close it at once."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.database.close()

    async def poll(self, heartbeats: Sequence[Heartbeat], now: Timestamp, after: TypeKey | None = None) -> PendingWork:
        work = await super().poll(heartbeats, now, after)
        return msgspec.structs.replace(work, store_now=self._clock.now())


_copying = threading.Lock()


@functools.cache
def _migrated() -> Database:
    database = connect(MEMORY)
    apply_migrations(database, MEMORY)
    return database


class _NoListener(GrpcListener):
    """Accepts no connections: the server cannot be reached from outside of this process."""

    def __init__(self) -> None:
        """Creates no gRPC server."""

    async def start(self, address: ListenAddress) -> ListenAddress:
        return address

    async def stop(self, grace_s: float) -> None: ...


class _Server(Server):
    def __init__(self, clock: VirtualClock) -> None:
        rng = SeededRng()
        config = ServerConfig(db=MEMORY, http=None, settings=SETTINGS)
        super().__init__(config, providers=(clock, SeededIds(), rng))
        self.store = _Store(clock, rng)

    def _open_harness(self, stack: AsyncExitStack) -> StoreHarness:
        return StoreHarness(self.store, NullBus(), None, None)

    def _grpc_listener(self, served: Sequence[grpc.GenericRpcHandler]) -> GrpcListener:
        return _NoListener()


class TestServer:
    """Runs from its creation to `close`, on a GuestLoop inside `host`. The clock shows `now` once it is ready."""

    __test__ = False

    def __init__(self, host: asyncio.AbstractEventLoop, clock: VirtualClock, now: Timestamp) -> None:
        clock.move_to(now - _SETTLED_US)
        self._clock = clock
        make_loop: Any = GuestLoop  # it does not implement most methods of a loop
        self.loop: GuestLoop = make_loop(host, clock.now() / US_PER_S)
        self._server = _Server(clock)
        self.only_schedules_ahead = False
        self.open_call = self._server.open_call
        self.loop.run_now(self._server.start())
        self.move_to(now)

    def move_to(self, now: Timestamp) -> None:
        """Set the clock."""
        by_us = now - self._clock.now()
        self._clock.move_to(now)
        self.loop.move_to(self.loop.time() + max(by_us, 0) / US_PER_S)

    def next_due(self) -> Timestamp | None:
        """When the store's next run or schedule is due."""
        work = self.loop.run_now(self._server.store.poll((), self._clock.now()))
        due = [at for at in (work.next_due_at, work.next_schedule_at) if at is not None]
        self.only_schedules_ahead = work.next_due_at is None
        return min(due, default=None)

    def close(self) -> None:
        self.loop.end_all()
        self._server.store.drop()

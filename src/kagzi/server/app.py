"""The composition root: store, engine, listeners. Knows every concrete class and decides nothing."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..core.errors import Unavailable
from ..core.version import __version__
from ..engine import Engine
from ..store.private_files import PRIVATE, database_files, make_private
from ..store.protocol import Bus, Migrator, NullBus, Store
from ..system import SystemClock, SystemIds, SystemRng
from ..wire.in_process import ClientEnd, Metadata
from .config import ServerConfig
from .database import PostgresDatabase, mask
from .descriptors import connection_limits
from .file_lock import Endpoint, FileLock, lock_or_refuse
from .grpc.deadlines import Deadlines
from .grpc.incidents import Incidents
from .grpc.interceptor import Interceptor
from .grpc.listener import GrpcListener
from .grpc.registration import SERVICES, handlers
from .grpc.services.admin import AdminService
from .grpc.services.namespaces import NamespaceService
from .grpc.services.schedules import WorkflowScheduleService
from .grpc.services.workers import WorkerService
from .grpc.services.workflows import WorkflowService
from .health import Health, HealthService, health_descriptor
from .in_process import InProcessListener
from .info import ServerInfo
from .listen import ListenAddress
from .log_guard import guard_logs
from .startup import CannotConnect, CannotStart

Result = TypeVar("Result")

_TURN_AWAY_S = 0.05  # calls already on their way are refused in words before the port closes
_REACH_S = 5.0
_REACH_AGAIN_S = 0.25


Listeners = tuple[GrpcListener, InProcessListener]


class _StoreHarness(NamedTuple):
    store: Store
    bus: Bus
    migrator: Migrator | None  # None: nothing to migrate
    lock: FileLock | None


class Server:
    """One server, from `start` to `stop`; both may be called again. Prints nothing and handles no signals.

    `lock`: of the SQLite file, if the caller has taken it already; it is released with the server.
    """

    def __init__(self, config: ServerConfig, *, lock: FileLock | None = None) -> None:
        self._config = config
        self._lock = lock
        self._clock, self._ids, self._rng = SystemClock(), SystemIds(), SystemRng()
        self._stack: AsyncExitStack | None = None
        self._grace_s = 0.0
        self._hurry = asyncio.Event()
        self._address: ListenAddress | None = None
        self._info: ServerInfo | None = None
        self._engine: Engine | None = None
        self._in_process: InProcessListener | None = None

    def open_call(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> ClientEnd:
        """A call from within this process (`OpenCall`)."""
        return _started(self._in_process).open_call(path, metadata, timeout_s, request)

    @property
    def grpc_address(self) -> str:
        return str(_started(self._address))

    @property
    def http_url(self) -> str:
        """Empty without an HTTP listener."""
        return _started(self._info).http_url

    @property
    def store_url(self) -> str:
        """As it may be shown: without passwords."""
        return mask(self._config.db)

    async def start(self) -> None:
        """Raises CannotStart (CannotConnect), SchemaMismatch, InvalidArgument; nothing is left behind then."""
        if self._stack is not None:
            return
        guard_logs()
        self._config.refuse_unprotected()
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()

    async def stop(self, grace_s: float | None = None) -> None:
        """Calls in flight finish within the grace time; workers are told to go elsewhere; nothing acknowledged is
        lost."""
        stack, self._stack = self._stack, None
        if stack is not None:
            self._grace_s = self._config.grace_ms / 1_000 if grace_s is None else grace_s
            await stack.aclose()

    def hurry(self) -> None:
        """While stopping: wait no longer for calls in flight."""
        self._hurry.set()

    async def wait_failed(self) -> BaseException:
        """Returns when a part of the server died beyond restarting."""
        return await _started(self._engine).wait_failed()

    # --- putting it together ------------------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack) -> None:
        self._grace_s, self._hurry = 0.0, asyncio.Event()
        harness = self._open_harness(stack)
        await self._reach(lambda: self._migrate(harness.migrator))
        stack.push_async_callback(harness.store.close)
        await self._reach(harness.store.open)
        engine = Engine(
            harness.store,
            harness.bus,
            clock=self._clock,
            ids=self._ids,
            rng=self._rng,
            settings=self._config.settings,
            server_id=(server_id := self._ids.token()),
        )
        if harness.lock is not None:
            await engine.workers.died(harness.lock.died)
        stack.push_async_callback(engine.stop)
        await engine.start()
        info = ServerInfo(
            version=__version__,
            store=harness.store.name,
            server_id=server_id,
            max_payload_bytes=self._config.settings.payload_bytes,
        )
        await self._listen(stack, engine, info)
        if harness.lock is not None:
            harness.lock.publish(Endpoint(os.getpid(), self.grpc_address, self._config.secret))
        self._engine, self._info = engine, info

    async def _listen(self, stack: AsyncExitStack, engine: Engine, info: ServerInfo) -> None:
        deadlines = Deadlines()
        health = Health(engine.health, frozenset(service.full_name for service in SERVICES), deadlines)
        interceptor = Interceptor(
            ids=self._ids,
            secret=self._config.secret,
            admit=engine.namespaces.admit,
            store_problem=engine.store_problem,
        )
        services = {
            "kagzi.v1.WorkflowService": WorkflowService(
                engine,
                url_of=info.url_of,
                deadlines=deadlines,
                incidents=Incidents(self._ids),
                answers=interceptor.answers,
                exports=interceptor.exports,
            ),
            "kagzi.v1.WorkerService": WorkerService(
                engine,
                clock=self._clock,
                settings=self._config.settings,
                deadlines=deadlines,
                answers=interceptor.answers,
                version=__version__,
            ),
            "kagzi.v1.WorkflowScheduleService": WorkflowScheduleService(engine.schedules, engine.served),
            "kagzi.v1.AdminService": AdminService(engine, clock=self._clock, health=health, info=info),
            "kagzi.v1.NamespaceService": NamespaceService(engine),
            "grpc.health.v1.Health": HealthService(health, deadlines),
        }
        served = handlers(interceptor, services, (*SERVICES, health_descriptor()))
        listener = GrpcListener(served, max_connections=connection_limits().grpc)
        self._in_process = InProcessListener(served)
        start_http = self._bind_http(stack, info)
        stack.push_async_callback(self._stop_listening, (listener, self._in_process), interceptor, engine, deadlines)
        self._in_process.start()
        self._address = await listener.start(self._config.listen)
        await start_http(engine, health)

    def _bind_http(self, stack: AsyncExitStack, info: ServerInfo) -> Callable[[Engine, Health], Awaitable[None]]:
        """The port is bound first, so that the first answer of the gRPC side can name its URL."""
        if self._config.http is None:
            return _nothing_to_start
        from .http.listener import HttpListener, Pages  # noqa: PLC0415  embedded servers need no web code

        http = HttpListener(self._config.http, max_connections=connection_limits().http)
        stack.push_async_callback(http.stop)
        info.http_url = http.url

        async def start(engine: Engine, health: Health) -> None:
            await http.start(
                Pages(engine, health, info, self.grpc_address, self.store_url, incidents=Incidents(self._ids))
            )

        return start

    async def _stop_listening(
        self, listeners: Listeners, interceptor: Interceptor, engine: Engine, deadlines: Deadlines
    ) -> None:
        interceptor.close()
        engine.sessions.announce_stop()
        deadlines.end()
        await asyncio.sleep(_TURN_AWAY_S)
        stopping = asyncio.ensure_future(_stop_all(listeners, self._grace_s))
        hurried = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        await (stopping if stopping.done() else _stop_all(listeners, 0.0))

    # --- the store ----------------------------------------------------------------------------------------------------

    def _open_harness(self, stack: AsyncExitStack) -> _StoreHarness:
        database = self._config.database
        if isinstance(database, PostgresDatabase):
            from ..store.postgres import PostgresBus, PostgresMigrator, PostgresStore  # noqa: PLC0415  one driver

            url = database.url
            bus = PostgresBus(self._config.db_direct or url, server_id=self._ids.token())
            return _StoreHarness(PostgresStore(url, rng=self._rng), bus, PostgresMigrator(url), None)
        from ..store.sqlite import SqliteMigrator, SqliteStore  # noqa: PLC0415  as above

        if database.path is None:
            return _StoreHarness(SqliteStore(":memory:", rng=self._rng), NullBus(), None, None)
        lock = self._lock or lock_or_refuse(database.path)
        stack.callback(lock.release)
        _make_private(database.path, lock)
        path = str(database.path)
        return _StoreHarness(SqliteStore(path, rng=self._rng), NullBus(), SqliteMigrator(path), lock)

    async def _migrate(self, migrator: Migrator | None) -> None:
        if migrator is None:
            return
        status = await migrator.status()
        if not status.pending:
            return
        if self._config.no_migrate:
            raise CannotStart(
                f"the database has schema version {status.current}, this server needs {status.latest}. "
                f"Run `kagzi db migrate --db {self.store_url}`, or start without --no-migrate."
            )
        await migrator.migrate()

    async def _reach(self, action: Callable[[], Awaitable[Result]]) -> Result:
        """A database that is just starting gets a few seconds. Raises CannotConnect."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _REACH_S
        while True:
            try:
                return await action()
            except Unavailable as error:
                if loop.time() > deadline:
                    raise CannotConnect(
                        f"cannot reach the database {self.store_url}: {error.message.rstrip('.')}. "
                        "Check that it runs, and that host, user and password are right."
                    ) from error
            await asyncio.sleep(_REACH_AGAIN_S)


async def _stop_all(listeners: Listeners, grace_s: float) -> None:
    await asyncio.gather(*(listener.stop(grace_s) for listener in listeners))


async def _nothing_to_start(engine: Engine, health: Health) -> None:
    return


def _make_private(path: Path, lock: FileLock) -> None:
    """The file is its owner's only, and what leads to it. SQLite gives companions that it makes the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
    make_private((*database_files(path), *lock.files))


def _started(value: Result | None) -> Result:
    if value is None:
        raise RuntimeError("the server is not started")
    return value

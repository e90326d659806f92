"""The composition root: wires up the store, the engine and the listeners. Contains no logic of its own."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..core.errors import Unavailable
from ..core.providers import Clock, Ids, Rng
from ..core.version import __version__
from ..engine import Engine
from ..engine.measurements.values import Samples
from ..store.protocol import Bus, Migrator, NullBus, Store
from ..system import SystemClock, SystemIds, SystemRng
from ..wire.calls.call import ClientEnd, Metadata
from ..wire.calls.frames import VERSION
from .access.access import Access
from .access.opening import open_access
from .calls import CallServer
from .config import ServerConfig
from .database import PostgresDatabase, mask
from .descriptors import connection_limits
from .file_lock import Endpoint, FileLock, lock_or_refuse
from .grpc.deadlines import Deadlines
from .grpc.incidents import Incidents
from .grpc.interceptor import Interceptor
from .grpc.listener import GrpcListener
from .grpc.registration import SERVICES
from .grpc_handlers import grpc_handlers
from .health import Health
from .in_process import InProcessListener
from .info import ServerInfo
from .listen import ListenAddress, reachable, refuse_taken
from .log_guard import guard_logs
from .metrics.page import samples_of
from .outbox import drain_outbox
from .peers import Peers
from .startup import CannotConnect, CannotStart, migrate
from .tracing.opening import open_tracing

if TYPE_CHECKING:
    import grpc

    from .tls import ServerTls
    from .tracing.spans import ServerTracing
    from .websocket import WebSocketListener

Result = TypeVar("Result")
logger = logging.getLogger("kagzi.server")

_TURN_AWAY_S = 0.05  # time in which calls that are arriving get a proper refusal before the port closes
_REACH_S = 5.0
_REACH_AGAIN_S = 0.25


Listeners = tuple[GrpcListener, CallServer]


class StoreHarness(NamedTuple):
    store: Store
    bus: Bus
    migrator: Migrator | None  # None: nothing to migrate
    lock: FileLock | None


class Server:
    """One server, from `start` to `stop`; both may be called again. Prints nothing and handles no signals.

    `lock`: the lock of the SQLite file, if the caller already holds it; it is released with the server. `peers`: the
    other processes of this server, which its health check covers too. `providers`: replace the system's own.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        lock: FileLock | None = None,
        peers: Peers | None = None,
        providers: tuple[Clock, Ids, Rng] | None = None,
    ) -> None:
        self._config = config
        self._lock = lock
        self._peers = peers or Peers()
        self._health: Health | None = None
        self._clock, self._ids, self._rng = providers or (SystemClock(), SystemIds(), SystemRng())
        self._stack: AsyncExitStack | None = None
        self._grace_s = 0.0
        self._hurry = asyncio.Event()
        self._address: ListenAddress | None = None
        self._info: ServerInfo | None = None
        self._schema = 0
        self._engine: Engine | None = None
        self._tls: ServerTls | None = None
        self._in_process: InProcessListener | None = None

    def open_call(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> ClientEnd:
        """Opens a call from within this process (`OpenCall`)."""
        return _started(self._in_process).open_call(path, metadata, timeout_s, request)

    @property
    def grpc_address(self) -> str:
        return str(_started(self._address))

    @property
    def client_address(self) -> str:
        return self.grpc_address if self._tls is None else f"https://{self.grpc_address}"

    @property
    def public_url(self) -> str:
        """The URL of the dashboard for users; empty without an HTTP listener."""
        return _started(self._info).http_url

    @property
    def http_url(self) -> str:
        """The URL that the HTTP listener is bound to; empty without an HTTP listener."""
        return _started(self._info).listens_at

    @property
    def websocket_url(self) -> str:
        """Empty if calls are served over gRPC only."""
        return _started(self._info).websocket_url

    @property
    def store_url(self) -> str:
        """The URL of the store without passwords, safe to show."""
        return mask(self._config.db)

    @property
    def problem(self) -> str | None:
        """Why this process cannot serve, or None; its peers are not considered."""
        return _started(self._health).own_problem()

    def samples(self) -> Samples:
        """The metrics of this process."""
        return samples_of(_started(self._engine), _started(self._health))

    async def start(self) -> None:
        """Raises CannotStart (CannotConnect), SchemaMismatch, InvalidArgument; all resources are released first."""
        if self._stack is not None:
            return
        guard_logs()
        self._config.refuse_unprotected()
        self._config.refuse_websocket_without_http()
        self._tls = self._config.load_tls(self._clock)
        refuse_taken((self._config.listen, "listen"), (self._config.http, "http"))  # before a database is created
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()

    async def stop(self, grace_s: float | None = None) -> None:
        """Gives calls in flight the grace time to finish and tells workers to connect elsewhere. Nothing acknowledged
        is lost."""
        stack, self._stack = self._stack, None
        if stack is not None:
            self._grace_s = self._config.grace_ms / 1_000 if grace_s is None else grace_s
            await stack.aclose()

    def hurry(self) -> None:
        """While stopping: stop waiting for calls in flight."""
        self._hurry.set()

    async def wait_failed(self) -> BaseException:
        """Returns when a part of the server has failed and cannot be restarted."""
        return await _started(self._engine).wait_failed()

    # --- wiring -------------------------------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack) -> None:
        self._grace_s, self._hurry = 0.0, asyncio.Event()
        harness = await self._open_store(stack)
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
        drain_outbox(engine, self._config)
        info = ServerInfo(
            version=__version__,
            store=harness.store.name,
            server_id=server_id,
            max_payload_bytes=self._config.settings.payload_bytes,
            auth="insecure" if self._config.open_to_others else self._config.auth,
            start_batches=harness.store.start_batches,
            trace_url=self._config.trace_url,
            schema_version=self._schema,
        )
        await self._listen(stack, engine, info)
        if harness.lock is not None:
            harness.lock.publish(Endpoint(os.getpid(), self.client_address, self._config.secret))
        self._engine, self._info = engine, info

    async def _listen(self, stack: AsyncExitStack, engine: Engine, info: ServerInfo) -> None:
        deadlines = Deadlines()
        names = frozenset(service.full_name for service in SERVICES)
        self._health = health = Health(engine.health, names, deadlines, self._peers)
        access = await open_access(stack, engine, self._config, self._clock)
        incidents = Incidents(self._ids, engine.measurements)
        interceptor = Interceptor(
            ids=self._ids,
            access=access,
            secret=self._config.secret,
            admit=engine.namespaces.admit,
            store_problem=engine.store_problem,
            incidents=incidents,
        )
        tracing = open_tracing(stack, self._config.otlp)
        served = grpc_handlers(
            engine,
            interceptor,
            clock=self._clock,
            config=self._config,
            deadlines=deadlines,
            incidents=incidents,
            health=health,
            info=info,
            tracing=tracing,
        )
        listener = self._grpc_listener(served)
        calls = CallServer(served)
        calls.start()
        self._in_process = InProcessListener(calls)
        if self._tls is not None:
            stack.callback(self._tls.watching())
        start_http = self._bind_http(stack, info, calls, interceptor, deadlines, tracing=tracing)
        stack.callback(self._in_process.stop)
        stack.push_async_callback(self._stop_listening, (listener, calls), interceptor, engine, deadlines)
        self._address = await listener.start(self._config.listen)
        await start_http(engine, health, access)

    def _grpc_listener(self, served: "Sequence[grpc.GenericRpcHandler]") -> GrpcListener:
        limit, shared = connection_limits().grpc, self._config.listen.shared
        keys = self._config.asks_for_keys
        return GrpcListener(served, max_connections=limit, reuse_port=shared, keys_first=keys, tls=self._tls)

    def _bind_http(
        self,
        stack: AsyncExitStack,
        info: ServerInfo,
        calls: CallServer,
        interceptor: Interceptor,
        deadlines: Deadlines,
        *,
        tracing: "ServerTracing | None",
    ) -> Callable[[Engine, Health, Access], Awaitable[None]]:
        """Binds the port first, so that the first gRPC response can contain its URL."""
        if self._config.http is None:
            return _nothing_to_start
        from .http.listener import HttpListener  # noqa: PLC0415  embedded servers need no HTTP
        from .http.page_data import PageData  # noqa: PLC0415  as above
        from .http.routes import routes  # noqa: PLC0415  as above
        from .http.run_counts import CountedRuns  # noqa: PLC0415  as above

        routes()  # fails the start if a route has no declared scope

        context = None if self._tls is None else self._tls.context
        http = HttpListener(self._config.http, max_connections=connection_limits().http, context=context)
        stack.push_async_callback(http.stop)
        info.listens_at = http.url + self._config.http_base_path
        info.http_url = self._config.public_url or reachable(info.listens_at)
        make_websocket = self._websocket(calls, info, http.websocket_url)
        stack.push_async_callback(http.stop_websockets)

        async def start(engine: Engine, health: Health, access: Access) -> None:
            data = PageData(
                engine=engine,
                health=health,
                info=info,
                grpc_address=self.client_address,
                store_url=self.store_url,
                incidents=Incidents(self._ids, engine.measurements),
                clock=self._clock,
                ids=self._ids,
                deadlines=deadlines,
                budgets=interceptor.budgets,
                answers=interceptor.answers,
                exports=interceptor.exports,
                run_counts=CountedRuns(engine.runs, self._clock),
                access=access,
                hosts=self._config.http_hosts,
                base_path=self._config.http_base_path,
                proxies=self._config.http_proxies,
                tracing=tracing,
            )
            await engine.store_gauges.admit_names()
            stack.push_async_callback(engine.store_gauges.stop)
            await http.start(data, make_websocket)

        return start

    def _websocket(self, calls: CallServer, info: ServerInfo, url: str) -> "Callable[[], WebSocketListener] | None":
        """Returns a factory that runs when the first connection arrives. None: calls are served over gRPC only."""
        if self._config.websocket is False:
            return None
        if find_spec("picows") is None:
            if self._config.websocket:
                raise CannotStart("--websocket needs picows, which is not installed. Install it, or leave that out.")
            logger.info("calls are served by gRPC only: picows is not installed")
            return None
        listener_id = info.listener_id = self._config.listener_id or self._ids.token()
        info.websocket_url, info.websocket_version = url, VERSION

        def make() -> "WebSocketListener":
            from .websocket import WebSocketListener  # noqa: PLC0415  loaded with the first connection

            limit = connection_limits().websocket
            return WebSocketListener(calls, listener_id=listener_id, max_connections=limit)

        return make

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

    @asynccontextmanager
    async def store_only(self) -> AsyncGenerator[Store]:
        """Opens the database without a server, for commands that run before one exists. Raises the same as `start`."""
        async with AsyncExitStack() as stack:
            yield (await self._open_store(stack)).store

    async def _open_store(self, stack: AsyncExitStack) -> StoreHarness:
        harness = self._open_harness(stack)
        refuse = self._config.no_migrate
        self._schema = await self._reach(lambda: migrate(harness.migrator, self.store_url, refuse=refuse))
        stack.push_async_callback(harness.store.close)
        await self._reach(harness.store.open)
        return harness

    def _open_harness(self, stack: AsyncExitStack) -> StoreHarness:
        database = self._config.database
        if isinstance(database, PostgresDatabase):
            from ..store.postgres import PostgresBus, PostgresMigrator, PostgresStore  # noqa: PLC0415  one driver

            url = database.url
            bus = PostgresBus(self._config.db_direct or url, server_id=self._ids.token())
            return StoreHarness(PostgresStore(url, rng=self._rng), bus, PostgresMigrator(url), None)
        from ..store.sqlite import SqliteMigrator, SqliteStore  # noqa: PLC0415  as above

        if database.path is None:
            return StoreHarness(SqliteStore(":memory:", rng=self._rng), NullBus(), None, None)
        lock = self._lock or lock_or_refuse(database.path)
        stack.callback(lock.release)
        lock.make_private(database.path)
        path = str(database.path)
        return StoreHarness(SqliteStore(path, rng=self._rng), NullBus(), SqliteMigrator(path), lock)

    async def _reach(self, action: Callable[[], Awaitable[Result]]) -> Result:
        """Retries for a few seconds, since the database may still be starting. Raises CannotConnect."""
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


async def _nothing_to_start(engine: Engine, health: Health, access: Access) -> None:
    return


def _started(value: Result | None) -> Result:
    if value is None:
        raise RuntimeError("the server is not started")
    return value

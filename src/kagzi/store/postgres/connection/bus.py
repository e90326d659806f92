"""Servers on one database wake each other: LISTEN on one connection, NOTIFY on another; messages contain names only.

The listening connection is monitored and re-established indefinitely; one `POLL_AGAIN` then covers whatever was missed.
Through a pooler in transaction mode a server cannot listen, but it can notify: such a server polls every second
instead.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

import asyncpg
import msgspec

from ....core.errors import Unavailable
from ...protocol import POLL_AGAIN, EndedRun, RemoteNotice, TypeKey, Wake
from .barrier import Connection
from .connection import CLOSE_TIMEOUT_S, HOT_SETTINGS, Counters, Link
from .failures import LOSSES
from .target import Target

_log = logging.getLogger(__name__)

_CHANNEL = "kagzi_wake"
PAYLOAD_BYTES = 7_900
"""PostgreSQL refuses 8,000 and more."""

_PROBE_INTERVAL_S = 30.0
_PROBE_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_DEAF_INTERVAL_S = 1.0
"""A cancelled run begins no step more than a second later, whichever server received the request."""
_PROBE_SETTINGS = {"jit": "off"}  # how a connection treats a setting shows whether it goes through a pooler


class _Message(msgspec.Struct, frozen=True, array_like=True):
    """`ended`: every namespace in which runs ended, for servers of an earlier version, which then poll for their
    waiting callers. `ended_runs`: the ended runs by namespace, where they are known."""

    server_id: str
    pending: list[TypeKey] = []
    ended: list[str] = []
    poll_again: bool = False
    notices: list[RemoteNotice] = []
    ended_runs: dict[str, list[str]] = {}


Name = TypeVar("Name", str, TypeKey, RemoteNotice, EndedRun)

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(_Message)


class PostgresBus:
    """Implements `store.protocol.Bus`."""

    def __init__(self, url: str, *, server_id: str) -> None:
        self._target = Target(url)
        self._server_id = server_id
        schema = self._target.options.schema
        self.channel = f"{_CHANNEL}_{schema}" if schema else _CHANNEL
        self._sender = Link(self._target, Counters(), HOT_SETTINGS)
        self._on_wake: Callable[[Wake], None] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def open(self, on_wake: Callable[[Wake], None]) -> None:
        """Returns once it listens, or knows that it cannot. Raises Unavailable."""
        if self._listening is not None:
            return
        self._on_wake = on_wake
        subscribed = await self._subscribe()
        task = self._poll() if subscribed is None else self._listen(*subscribed)
        self._listening = asyncio.create_task(task, name="kagzi-bus")

    async def publish(self, wake: Wake) -> None:
        async with self._sender.use(confirm=False) as session:
            for payload in _payloads(self._server_id, wake):
                await session.read("notify", channel=self.channel, payload=payload)

    async def close(self) -> None:
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=CLOSE_TIMEOUT_S)
        await self._sender.close()

    async def _listen(self, connection: Connection, lost: asyncio.Event) -> None:
        failures = 0
        while True:
            try:
                await self._watch(connection, lost)
            finally:
                connection.terminate()
            while True:
                # Servers that lost the same database reconnect at different times: the factor depends on the id.
                await asyncio.sleep(min(_FIRST_PAUSE_S * 2**failures, _LONGEST_PAUSE_S) * self._step(failures))
                try:
                    subscribed = await self._subscribe()
                except Unavailable as error:
                    failures = min(failures + 1, 10)
                    _log.warning("wake-ups from other servers are delayed: %s", error)
                else:
                    if subscribed is None:
                        return await self._poll()
                    connection, lost = subscribed
                    failures = 0
                    self._deliver(POLL_AGAIN)
                    break

    def _step(self, failures: int) -> float:
        return 0.75 + (sum(self._server_id.encode()) + failures) % 8 / 16

    async def _poll(self) -> None:
        _log.warning(
            "%s is reached through a pooler in transaction mode: other servers cannot wake this one, which polls "
            "every second instead. Pass the database itself as --db-direct for immediate wake-ups.",
            self._target.place,
        )
        while True:
            await asyncio.sleep(_DEAF_INTERVAL_S)
            self._deliver(POLL_AGAIN)

    async def _subscribe(self) -> tuple[Connection, asyncio.Event] | None:
        """None: not possible through this pooler."""
        connection = await self._target.connect(_PROBE_SETTINGS)
        if self._target.pooled:
            connection.terminate()
            return None
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            await connection.add_listener(self.channel, self._received)
        except (*LOSSES, asyncpg.PostgresError) as error:
            connection.terminate()
            raise self._target.lost(error, connection) from error
        self._target.hosts.on_failure = lambda host: lost.set() if host == connection.host else None
        return connection, lost

    async def _watch(self, connection: Connection, lost: asyncio.Event) -> None:
        """Returns when the connection is lost, or is to a host that is not the first choice any more. A dead network
        gives no sign, so the connection is probed."""
        while not lost.is_set():
            try:
                await asyncio.wait_for(lost.wait(), _PROBE_INTERVAL_S)
            except TimeoutError:
                try:
                    await connection.execute("SELECT 1", timeout=_PROBE_TIMEOUT_S)
                except (*LOSSES, asyncpg.PostgresError) as error:
                    self._target.lost(error, connection)
                    return

    def _received(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        try:
            message = _decoder.decode(str(payload))
        except msgspec.MsgspecError:
            _log.warning("a notification on %s was not understood: another version of Kagzi?", self.channel)
            self._deliver(POLL_AGAIN)
            return
        if message.server_id != self._server_id:
            self._deliver(_read(message))

    def _deliver(self, wake: Wake) -> None:
        if self._on_wake is None:
            return
        try:
            self._on_wake(wake)
        except Exception:  # noqa: BLE001  a failing callback must not end the listener
            _log.exception("a wake-up could not be processed")


def _read(message: _Message) -> Wake:
    named = message.ended_runs
    return Wake(
        frozenset(message.pending),
        frozenset(namespace for namespace in message.ended if namespace not in named),
        message.poll_again,
        frozenset(message.notices),
        frozenset(EndedRun(namespace, run_id) for namespace, run_ids in named.items() for run_id in run_ids),
    )


def _write(server_id: str, wake: Wake) -> _Message:
    named: dict[str, list[str]] = {}
    for namespace, run_id in sorted(wake.ended_runs):
        if namespace not in wake.ended:
            named.setdefault(namespace, []).append(run_id)
    ended = sorted(wake.ended.union(named))
    return _Message(server_id, sorted(wake.pending), ended, wake.poll_again, sorted(wake.notices), named)


def _payloads(server_id: str, wake: Wake) -> Iterator[str]:
    """The wake-up as messages that each fit into a notification."""
    payload = _encode(_write(server_id, wake))
    if len(payload) <= PAYLOAD_BYTES:
        yield payload.decode()
    elif _names(wake) == 1:  # a single name does not fit: have all servers poll
        yield _encode(_Message(server_id, poll_again=True)).decode()
    else:
        for part in _halves(wake):
            yield from _payloads(server_id, part)


def _names(wake: Wake) -> int:
    return len(wake.pending) + len(wake.ended) + len(wake.notices) + len(wake.ended_runs)


def _halves(wake: Wake) -> tuple[Wake, Wake]:
    """Divides the names in two, kind by kind; neither half is empty."""
    half = _names(wake) // 2
    pending, left = _divided(wake.pending, half)
    ended, left = _divided(wake.ended, left)
    notices, left = _divided(wake.notices, left)
    ended_runs, _ = _divided(wake.ended_runs, left)
    return (
        Wake(pending[0], ended[0], wake.poll_again, notices[0], ended_runs[0]),
        Wake(pending[1], ended[1], notices=notices[1], ended_runs=ended_runs[1]),
    )


def _divided(names: frozenset[Name], first: int) -> tuple[tuple[frozenset[Name], frozenset[Name]], int]:
    """The first `first` names and the others; and how many the first part still lacks."""
    ordered = sorted(names)
    return (frozenset(ordered[:first]), frozenset(ordered[first:])), max(0, first - len(ordered))

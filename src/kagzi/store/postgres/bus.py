"""Servers on one database wake each other: LISTEN on one connection, NOTIFY on its sibling, names and nothing else.

The listening connection is watched and made again for ever. Whatever may have been missed meanwhile is covered by
one `LOOK_AGAIN`. Through a pooler in transaction mode nobody can listen, but all can notify: such a server is told to look
every second instead.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

import asyncpg
import msgspec

from ...core.errors import Unavailable
from ..protocol import LOOK_AGAIN, Poke, TypeKey, Wake
from .connections import CLOSE_TIMEOUT_S, HOT_SETTINGS, Counters, Link, Target
from .failures import LOSSES

_log = logging.getLogger(__name__)

CHANNEL = "kagzi_wake"
PAYLOAD_BYTES = 7_900
"""PostgreSQL refuses 8,000."""

_PROBE_INTERVAL_S = 30.0
_PROBE_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_DEAF_INTERVAL_S = 1.0
"""A cancelled run begins no step later than a second afterwards, whichever server was told."""
_PROBE_SETTINGS = {"jit": "off"}  # a pooler shows itself by what it does with a setting


class _Letter(msgspec.Struct, frozen=True, array_like=True):
    server_id: str
    pending: list[TypeKey] = []
    ended: list[str] = []
    look_again: bool = False
    pokes: list[Poke] = []


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(_Letter)


class PostgresBus:
    """Keeps `store.protocol.Bus`."""

    def __init__(self, url: str, *, server_id: str) -> None:
        self._target = Target(url)
        self._server_id = server_id
        self._sender = Link(self._target, Counters(), HOT_SETTINGS)
        self._on_wake: Callable[[Wake], None] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def open(self, on_wake: Callable[[Wake], None]) -> None:
        """Returns once it listens, or knows that it never will; raises Unavailable if the database is."""
        if self._listening is not None:
            return
        self._on_wake = on_wake
        subscribed = await self._subscribe()
        task = self._look() if subscribed is None else self._listen(*subscribed)
        self._listening = asyncio.create_task(task, name="kagzi-bus")

    async def publish(self, wake: Wake) -> None:
        async with self._sender.use() as session:
            for payload in _payloads(self._server_id, wake):
                await session.read("notify", CHANNEL, payload)

    async def close(self) -> None:
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=CLOSE_TIMEOUT_S)
        await self._sender.close()

    async def _listen(self, connection: asyncpg.Connection, lost: asyncio.Event) -> None:
        failures = 0
        while True:
            try:
                await self._watch(connection, lost)
            finally:
                connection.terminate()
            while True:
                # Servers that lost the same database come back at different moments: each id has a step of its own.
                await asyncio.sleep(min(_FIRST_PAUSE_S * 2**failures, _LONGEST_PAUSE_S) * self._step(failures))
                try:
                    subscribed = await self._subscribe()
                except Unavailable as error:
                    failures = min(failures + 1, 10)
                    _log.warning("wake-ups from other servers are late: %s", error)
                else:
                    if subscribed is None:
                        return await self._look()
                    connection, lost = subscribed
                    failures = 0
                    self._deliver(LOOK_AGAIN)
                    break

    def _step(self, failures: int) -> float:
        return 0.75 + (sum(self._server_id.encode()) + failures) % 8 / 16

    async def _look(self) -> None:
        _log.warning(
            "%s is reached through a pooler in transaction mode: other servers cannot wake this one, which looks every second "
            "instead. Name the database itself with --db-direct for wake-ups at once.",
            self._target.place,
        )
        while True:
            await asyncio.sleep(_DEAF_INTERVAL_S)
            self._deliver(LOOK_AGAIN)

    async def _subscribe(self) -> tuple[asyncpg.Connection, asyncio.Event] | None:
        """None: through this pooler nobody can."""
        connection = await self._target.connect(_PROBE_SETTINGS)
        if self._target.pooled:
            connection.terminate()
            return None
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            await connection.add_listener(CHANNEL, self._received)
        except (*LOSSES, asyncpg.PostgresError) as error:
            connection.terminate()
            raise self._target.lost(error) from error
        return connection, lost

    async def _watch(self, connection: asyncpg.Connection, lost: asyncio.Event) -> None:
        """Returns when the connection is gone. A dead network does not say so: it is probed."""
        while not lost.is_set():
            try:
                await asyncio.wait_for(lost.wait(), _PROBE_INTERVAL_S)
            except TimeoutError:
                try:
                    await connection.execute("SELECT 1", timeout=_PROBE_TIMEOUT_S)
                except (*LOSSES, asyncpg.PostgresError):
                    return

    def _received(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        try:
            letter = _decoder.decode(str(payload))
        except msgspec.MsgspecError:
            _log.warning("a notification on %s was not understood: another version of Kagzi?", CHANNEL)
            self._deliver(LOOK_AGAIN)
            return
        if letter.server_id != self._server_id:
            self._deliver(
                Wake(frozenset(letter.pending), frozenset(letter.ended), letter.look_again, frozenset(letter.pokes))
            )

    def _deliver(self, wake: Wake) -> None:
        if self._on_wake is None:
            return
        try:
            self._on_wake(wake)
        except Exception:  # noqa: BLE001  whoever listens must not end by what he hears
            _log.exception("a wake-up could not be acted upon")


def _payloads(server_id: str, wake: Wake) -> Iterator[str]:
    """The wake as letters that are each short enough."""
    pending, ended, pokes = sorted(wake.pending), sorted(wake.ended), sorted(wake.pokes)
    letter = _Letter(server_id, pending, ended, wake.look_again, pokes)
    payload = _encode(letter)
    if len(payload) <= PAYLOAD_BYTES:
        yield payload.decode()
    elif len(pending) + len(ended) + len(pokes) == 1:  # names so long that they do not fit: have everybody look
        yield _encode(_Letter(server_id, look_again=True)).decode()
    else:
        for part in _halves(wake):
            yield from _payloads(server_id, part)


def _halves(wake: Wake) -> tuple[Wake, Wake]:
    """Everything divided in two, one kind after the other; both have something."""
    pending, ended, pokes = sorted(wake.pending), sorted(wake.ended), sorted(wake.pokes)
    half = (len(pending) + len(ended) + len(pokes)) // 2
    first = pending[:half], ended[: max(0, half - len(pending))], pokes[: max(0, half - len(pending) - len(ended))]
    return (
        Wake(frozenset(first[0]), frozenset(first[1]), wake.look_again, frozenset(first[2])),
        Wake(
            frozenset(pending[len(first[0]) :]),
            frozenset(ended[len(first[1]) :]),
            pokes=frozenset(pokes[len(first[2]) :]),
        ),
    )

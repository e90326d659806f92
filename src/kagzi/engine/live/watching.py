"""Watching runs live: all events of a run, by seq, on any server.

Nothing is stored for it. When this server records something about a watched run, its watchers read it at once; records
of other servers, and timers, are found by one poll per second for all watched runs together. Without watchers, nothing
is done.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

import msgspec

from ...core.budgets import NamespaceBudget
from ...core.errors import InvalidArgument, Unavailable
from ...core.events import EventKind, RunEvent, RunEventPage, RunMark, end_kind
from ...core.ids import is_uuid
from ...core.limits import WATCHES, WATCHES_SHARE
from ...core.records import RunEnd, RunKey
from ...core.run.commands import Command
from ...store.protocol import Store
from ..checks import requests as checks
from ..commit.outages import backoff_s

logger = logging.getLogger("kagzi.engine")

POLL_S = 1.0
SPACING_S = 0.1  # between reads of a run: events of a busy run come in batches, the first one at once
_EVENTS = 500  # in one read
_POLL_RUNS = 500
_CALL_TIMEOUT_S = 30.0


_Read: TypeAlias = "asyncio.Future[RunEventPage | None]"


class WatchUpdate(msgspec.Struct, frozen=True):
    """New events, and the state of the run. If `mark.status.ended` and no more follow, the last event is the end."""

    mark: RunMark
    events: tuple[RunEvent, ...]


class _Watch:
    """One watcher of one run."""

    def __init__(self, run: RunKey) -> None:
        self.run = run
        self.mark: RunMark | None = None  # as last sent
        self.changed = asyncio.Event()


class Watching:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._reads: dict[RunKey, dict[int, _Read]] = {}  # in progress, by the seq they begin after
        self._watched: dict[str, list[_Watch]] = {}  # by run id
        self.budget = NamespaceBudget("watches", WATCHES, WATCHES_SHARE)
        self._somebody = asyncio.Event()

    async def watch(self, namespace: str, run_id: str, after_seq: int) -> AsyncGenerator[WatchUpdate]:
        """The events after `after_seq`, then new ones, until the run has ended. Raises NotFound, InvalidArgument,
        ResourceExhausted, Unavailable: a caller that continues from the last seq it received misses nothing."""
        checks.name(namespace, "namespace")
        if after_seq < 0:
            raise InvalidArgument(f"after_seq={after_seq} is negative. The first event has 0.", field="after_seq")
        if not is_uuid(run_id):
            raise checks.no_run(run_id)
        watch = _Watch(RunKey(namespace, run_id))
        self._add(watch)
        try:
            async with aclosing(self._follow(watch, after_seq)) as updates:
                async for update in updates:
                    yield update
        finally:
            self._remove(watch)

    async def _follow(self, watch: _Watch, after_seq: int) -> AsyncGenerator[WatchUpdate]:
        first = True
        while True:
            watch.changed.clear()
            page = await self._read_events(watch.run, after_seq)
            events = list(page.events)
            if first and after_seq == 0:
                events.insert(0, RunEvent(seq=0, at=page.mark.created_at, kind=EventKind.RUN_STARTED))
            ended = page.mark.status.ended and not page.more
            if ended and page.mark.seq > after_seq:
                end = await self._end(page.mark)
                if end is None:  # it was reopened meanwhile
                    continue
                events.append(end)
            if first or events or page.mark != watch.mark:
                yield WatchUpdate(page.mark, tuple(events))
            if ended:
                return
            first = False
            watch.mark = page.mark
            after_seq = max(after_seq, max((event.seq for event in events), default=0))
            if not page.more:
                await asyncio.sleep(_to_next_poll_s())
                await watch.changed.wait()

    async def _read_events(self, run: RunKey, after_seq: int) -> RunEventPage:
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                page = await asyncio.shield(self._shared_read(run, after_seq))
        except TimeoutError:
            raise Unavailable("the store did not respond in time. Watch again from the last seq.") from None
        if page is None:
            raise checks.no_run(run.run_id)
        return page

    def _shared_read(self, run: RunKey, after_seq: int) -> _Read:
        """Watchers of a run read at the same time and mostly from the same seq, so they share one read. A read that
        began before something was recorded is not shared afterwards: it may not see the record."""
        reads = self._reads.setdefault(run, {})
        read = reads.get(after_seq)
        if read is None:
            read = reads[after_seq] = asyncio.ensure_future(self._store.events_of(run, after_seq, _EVENTS))
            read.add_done_callback(partial(self._end_read, run, after_seq))
        return read

    def _end_read(self, run: RunKey, after_seq: int, read: _Read) -> None:
        reads = self._reads.get(run, {})
        if reads.get(after_seq) is read:
            del reads[after_seq]
        if not reads:
            self._reads.pop(run, None)
        if not read.cancelled():
            read.exception()  # mark it as retrieved: waiting callers get it, but there may be none left

    async def _end(self, mark: RunMark) -> RunEvent | None:
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            (ending,) = await self._store.endings_of((mark.run,))
        if not isinstance(ending, RunEnd):
            return None
        return RunEvent(
            seq=mark.seq,
            at=mark.finished_at or 0,
            kind=end_kind(ending.status, continued=ending.continued_as is not None),
            output=ending.output,
            error=ending.error,
            continued_as=ending.continued_as,
        )

    # --- watchers -----------------------------------------------------------------------------------------------------

    def _add(self, watch: _Watch) -> None:
        self.budget.take(watch.run.namespace)
        self._watched.setdefault(watch.run.run_id, []).append(watch)
        self._somebody.set()

    def _remove(self, watch: _Watch) -> None:
        self.budget.give_back(watch.run.namespace)
        watches = self._watched[watch.run.run_id]
        watches.remove(watch)
        if not watches:
            del self._watched[watch.run.run_id]

    # --- changes ------------------------------------------------------------------------------------------------------

    def recorded(self, commands: Sequence[Command]) -> None:
        """These commands were written. Called with every commit: it costs nothing without watchers."""
        if self._watched:
            self.touched(command.run.run_id for command in commands)

    def touched(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            for watch in self._watched.get(run_id, ()):
                self._changed(watch)

    def _changed(self, watch: _Watch) -> None:
        self._reads.pop(watch.run, None)
        watch.changed.set()

    async def run(self) -> None:
        """Polls the watched runs once a second."""
        failures = 0
        while True:
            if not self._watched:
                self._somebody.clear()
                await self._somebody.wait()
            await asyncio.sleep(POLL_S)
            try:
                await self._poll_all()
            except (Unavailable, TimeoutError) as error:
                failures += 1
                logger.debug("watched runs could not be polled: %s", error)
                await asyncio.sleep(backoff_s(failures))
            else:
                failures = 0

    async def _poll_all(self) -> None:
        runs = list({watch.run for watches in self._watched.values() for watch in watches})
        for start in range(0, len(runs), _POLL_RUNS):
            some = runs[start : start + _POLL_RUNS]
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                markers = dict(zip(some, await self._store.markers_of(some), strict=True))
            for run in some:
                for watch in self._watched.get(run.run_id, ()):
                    if watch.run == run and watch.mark != markers[run]:
                        self._changed(watch)


def _to_next_poll_s() -> float:
    """All watchers poll at the same times, so that they can share reads."""
    return SPACING_S - asyncio.get_running_loop().time() % SPACING_S

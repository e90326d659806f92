"""Live lists: the first page of a list of runs, kept up to date for everybody who watches it.

It shows state, not a log: nothing is stored for it, and a slow reader gets the current list, not the changes in
between. All watchers of the same list share one read per second, or sooner if this server has written in its namespace.
Without watchers, nothing is done.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from typing import TypeAlias

import msgspec

from ...core.budgets import NamespaceBudget
from ...core.effects import Effects
from ...core.errors import KagziError, ResourceExhausted, StatementFailed, Unavailable
from ...core.limits import LIVE_LIST_ROWS, LIVE_LISTS, LIVE_LISTS_SHARE
from ...core.pages.cursor import Cursor
from ...core.records import Rows, RunFilter, RunOrder, RunRecord
from ...core.run.commands import Command
from ...store.protocol import Store
from ..checks import requests as checks
from ..services.paging import place_by

logger = logging.getLogger("kagzi.engine")

POLL_S = 1.0
TOUCHED_S = 0.2
LISTS_AT_FULL_PACE = 16  # beyond it, each list is read less often
_CALL_TIMEOUT_S = 30.0

_Place: TypeAlias = tuple[int, str]


class ListRows(msgspec.Struct, frozen=True):
    """The whole list: the first change, and again if none of the shown runs is left, or there are more new runs than
    are shown."""

    rows: tuple[RunRecord, ...]
    more: bool  # more rows follow the last one


class RowChanged(msgspec.Struct, frozen=True):
    """A shown run has changed."""

    record: RunRecord


class RowGone(msgspec.Struct, frozen=True):
    """A shown run is no longer in the list."""

    run_id: str


class NewRows(msgspec.Struct, frozen=True):
    """How many runs in the list are not shown: newer ones, and others that have entered the shown range."""

    count: int


ListChange: TypeAlias = ListRows | RowChanged | RowGone | NewRows


class _Page:
    """The first rows of a list, newest first. `more`: others follow."""

    def __init__(self, rows: Sequence[RunRecord], place: Callable[[RunRecord], _Place], *, more: bool) -> None:
        self.rows = rows
        self.more = more
        self.by_id = {record.run.run_id: record for record in rows}
        self._end = place(rows[-1]) if rows and more else None

    def covers(self, place: _Place) -> bool:
        """Whether a run at this position would be in the page if it were in the list."""
        return self._end is None or place >= self._end


class _List:
    """A list with at least one watcher."""

    def __init__(self, namespace: str, where: RunFilter, order: RunOrder) -> None:
        self.namespace = namespace
        self.where = where
        self.order: RunOrder = order
        cursor = place_by(order)
        self.cursor = cursor
        self.place: Callable[[RunRecord], _Place] = lambda record: (cursor(record).at, record.run.run_id)
        self.watchers: list[_Watcher] = []
        self.page: _Page | None = None
        self.problem: KagziError | None = None  # why there is no page
        self.polled_at: float | None = None
        self.touched = False

    def due_at(self, stretch: float) -> float:
        if self.polled_at is None:
            return 0.0
        return self.polled_at + (TOUCHED_S if self.touched else POLL_S) * stretch

    @property
    def last_shown(self) -> _Place | None:
        """The last position that watchers were shown; None: the end of the first page."""
        return min((watcher.end for watcher in self.watchers if watcher.end is not None), default=None)


class _Watcher:
    """What one reader has been sent, and no more: its next changes are computed when it reads."""

    def __init__(self, watched: _List) -> None:
        self._list = watched
        self._shown: dict[str, RunRecord] = {}
        self._bounded = False  # more rows followed the last one
        self._new = 0
        self._seen: _Page | None = None
        self.end: _Place | None = None  # the position of the last row that was sent
        self.changed = asyncio.Event()

    def changes(self) -> list[ListChange]:
        """What has changed since the last call."""
        page = self._list.page
        if page is None or page is self._seen:
            return []
        first, self._seen = self._seen is None, page
        new = 0 if first else sum(1 for record in page.rows if self._is_new(record))
        if first or new > LIVE_LIST_ROWS or (new and not self._shown):
            return [self._begin(page)]
        changes: list[ListChange] = []
        place = self._list.place
        for run_id, shown in list(self._shown.items()):
            current = page.by_id.get(run_id)
            if current is not None and place(current) == place(shown):
                if current != shown:
                    self._shown[run_id] = current
                    changes.append(RowChanged(current))
            elif current is not None or page.covers(place(shown)):
                del self._shown[run_id]
                changes.append(RowGone(run_id))
        new = sum(1 for record in page.rows if self._is_new(record))  # a run that moved is both gone and new
        if new != self._new:
            self._new = new
            changes.append(NewRows(new))
        return changes

    def _begin(self, page: _Page) -> ListRows:
        rows = tuple(page.rows[:LIVE_LIST_ROWS])
        more = page.more or len(rows) < len(page.rows)
        self._shown = {record.run.run_id: record for record in rows}
        self._bounded, self._new = more, 0
        self.end = self._list.place(rows[-1]) if rows else None
        return ListRows(rows, more)

    def _is_new(self, record: RunRecord) -> bool:
        """Whether it is new in the shown range; rows after the last shown one belong to the next page."""
        if record.run.run_id in self._shown:
            return False
        return not self._bounded or self.end is None or self._list.place(record) > self.end


class LiveLists:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lists: dict[bytes, _List] = {}
        self._by_namespace: dict[str, list[_List]] = {}
        self._touched: set[str] = set()  # namespaces written since their lists were read
        self._polling: set[str] = set()  # namespaces
        self._work = asyncio.Event()
        self.budget = NamespaceBudget("live_lists", LIVE_LISTS, LIVE_LISTS_SHARE)

    async def watch(
        self, namespace: str, where: RunFilter, *, order: RunOrder | None = None
    ) -> AsyncGenerator[ListChange]:
        """The first rows of the list (`ListRows`), then its changes, until the reader closes this. A slow reader costs
        no memory beyond what it was sent. Raises InvalidArgument, ResourceExhausted, and Unavailable if the list cannot
        be read at first."""
        checks.name(namespace, "namespace")
        order = checks.run_order(where, order)
        self.budget.take(namespace)
        watched = self._list_of(namespace, where, order)
        watcher = _Watcher(watched)
        watched.watchers.append(watcher)
        if watched.page is not None:
            watched.touched = True  # its page may be up to a second old
            watcher.changed.set()
        self._work.set()
        try:
            while True:
                await watcher.changed.wait()
                watcher.changed.clear()
                if watched.page is None and watched.problem is not None:
                    raise copy(watched.problem)  # one of its own for each watcher: a raised error keeps frames
                for change in watcher.changes():
                    yield change
        finally:
            self._leave(watched, watcher)

    # --- watchers -----------------------------------------------------------------------------------------------------

    def _list_of(self, namespace: str, where: RunFilter, order: RunOrder) -> _List:
        key = _key(namespace, where, order)
        watched = self._lists.get(key)
        if watched is None:
            watched = self._lists[key] = _List(namespace, where, order)
            self._by_namespace.setdefault(namespace, []).append(watched)
        return watched

    def _leave(self, watched: _List, watcher: _Watcher) -> None:
        namespace = watched.namespace
        self.budget.give_back(namespace)
        watched.watchers.remove(watcher)
        if watched.watchers:
            return
        del self._lists[_key(namespace, watched.where, watched.order)]
        others = self._by_namespace[namespace]
        others.remove(watched)
        if not others:
            del self._by_namespace[namespace]
            self._touched.discard(namespace)

    # --- changes ------------------------------------------------------------------------------------------------------

    def recorded(self, commands: Iterable[Command]) -> None:
        """These commands were written. Called with every commit: it costs nothing without watchers."""
        if self._lists:
            self._touch({command.run.namespace for command in commands})

    def dispatched(self, effects: Effects) -> None:
        """Other changes by this server; as `recorded`."""
        if self._lists:
            runs = [*effects.changed, *(notice.leased.run for notice in effects.notices)]
            runs += [end.run for end in effects.ended]
            self._touch({run.namespace for run in runs} | {key.namespace for key in effects.pending})

    def _touch(self, namespaces: Iterable[str]) -> None:
        for namespace in namespaces:
            if namespace in self._by_namespace and namespace not in self._touched:
                self._touched.add(namespace)
                self._work.set()

    # --- reading ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Reads the watched lists when they are due. Namespaces do not wait for each other."""
        loop = asyncio.get_running_loop()
        self._polling.clear()
        async with asyncio.TaskGroup() as group:
            while True:
                self._work.clear()
                for namespace in self._touched:
                    for watched in self._by_namespace[namespace]:
                        watched.touched = True
                now, stretch = loop.time(), max(1.0, len(self._lists) / LISTS_AT_FULL_PACE)
                next_due_at: float | None = None
                for namespace, lists in self._by_namespace.items():
                    if namespace in self._polling:
                        continue
                    if due := [watched for watched in lists if watched.due_at(stretch) <= now]:
                        self._polling.add(namespace)
                        self._touched.discard(namespace)  # these reads may miss later writes
                        for watched in due:
                            watched.polled_at, watched.touched = now, False
                        group.create_task(self._poll_lists(namespace, due))
                    else:
                        due_at = min(watched.due_at(stretch) for watched in lists)
                        next_due_at = due_at if next_due_at is None else min(next_due_at, due_at)
                await self._wait(None if next_due_at is None else next_due_at - now)

    async def _wait(self, timeout_s: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._work.wait()

    async def _poll_lists(self, namespace: str, lists: Sequence[_List]) -> None:
        for watched in lists:
            if watched.watchers:
                await self._poll(watched)
        self._polling.discard(namespace)
        self._work.set()

    async def _poll(self, watched: _List) -> None:
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                watched.page = await self._read(watched)
        except (Unavailable, ResourceExhausted, StatementFailed) as error:
            logger.debug("a live list could not be read: %s", error)
            watched.problem = copy(error)  # watchers that have a page keep it
        except TimeoutError:
            watched.problem = Unavailable("the store did not respond in time. Watch the list again.")
        except Exception:
            logger.exception("a live list of namespace %s cannot be read", watched.namespace)
            watched.page, watched.problem = None, Unavailable("the list cannot be read: the server's log says why.")
        for watcher in watched.watchers:
            watcher.changed.set()

    async def _read(self, watched: _List) -> _Page:
        """Its first page; and the second if new runs have moved shown rows there."""
        rows = await self._rows(watched, None)
        last, read = watched.last_shown, list(rows.rows)
        behind = last is not None and read and last < watched.place(read[-1])
        if not rows.has_more or not behind or watched.where.id_prefix:
            return _Page(read, watched.place, more=rows.has_more)
        rest = await self._rows(watched, watched.cursor(read[-1]))
        return _Page([*read, *rest.rows], watched.place, more=rest.has_more)

    async def _rows(self, watched: _List, cursor: Cursor | None) -> Rows[RunRecord]:
        where, order = watched.where, watched.order
        return await self._store.list_runs(watched.namespace, where, cursor, LIVE_LIST_ROWS, order=order)


def _key(namespace: str, where: RunFilter, order: RunOrder) -> bytes:
    return msgspec.json.encode((namespace, where, order), order="deterministic")

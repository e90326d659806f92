"""Schedules fire: one transaction for as many as are due together."""

from collections.abc import Sequence

import asyncpg

from ....core.effects import Effects, merge
from ....core.errors import InternalError, Unavailable
from ....core.run.commands import StartRun
from ....core.run.outcomes import Busy, Outcome
from ....core.schedules.schedule import Fire, OpenRun
from ....core.times import Timestamp
from ...protocol import FiredSchedule, Firing
from ...rows import read_fire
from ...schedule_book import FIRING_TERMS, Book
from ..connection.connection import Session
from ..connection.failures import CONTENTION
from ..run.control import cancel_locked
from ..write.batch import Group, Outcomes, Writing
from ..write.endings import MovedError, lock_family
from ..write.starts import start_runs
from .schedule_rows import record_fires

_TRIES = 3
_OPEN_RUNS = 1_000

_Key = tuple[str, str]
"""Namespace and schedule id."""


class _BusyError(Exception):
    """A start met a lock: roll back and begin again."""


class _NoRng:
    """Starts roll none."""

    def fraction(self) -> float:
        return 0.0


async def fire_schedules(
    session: Session, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
) -> tuple[Sequence[FiredSchedule | None], Effects]:
    for _ in range(_TRIES):
        try:
            async with session.transaction():
                return await _fire(session, firings, now, cancel_by)
        except (*CONTENTION, asyncpg.InFailedSQLTransactionError, MovedError, _BusyError):
            continue  # a failed statement inside a start fails the transaction that it is part of
    raise Unavailable("what the schedules are to start is locked by somebody else: try again")


async def _fire(
    session: Session, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
) -> tuple[Sequence[FiredSchedule | None], Effects]:
    keys = [_key(firing) for firing in firings]
    namespaces, schedule_ids = zip(*keys, strict=True)
    rows = await session.read("lock_schedules", namespaces=namespaces, schedule_ids=schedule_ids)
    locked = {(row["namespace"], row["schedule_id"]): row for row in rows}
    mine: list[Firing] = []
    for firing in firings:
        row = locked.get(_key(firing))
        read = firing.schedule
        if row is not None and (not firing.moves or (row["revision"], row["next_at"]) == (read.revision, read.next_at)):
            mine.append(firing)
    books = await _open_books(session, mine, now) if mine else {}
    effects: list[Effects] = []
    while starts := [(book, *each) for book in books.values() for each in book.next_starts()]:
        for book, _, go in starts:
            await _cancel(session, book, go.cancel, now, cancel_by)
        outcomes, started = await _start(session, [go.start for _, _, go in starts], now)
        effects += started
        for (book, occasion, go), outcome in zip(starts, outcomes, strict=True):
            book.came_to(occasion, go.start, outcome)
    if books:
        await _move(session, list(books.values()), now)
    effects += [each for book in books.values() for each in book.effects]
    return [books[key].answer() if key in books else None for key in keys], merge(effects)


def _key(firing: Firing) -> _Key:
    return firing.schedule.namespace, firing.schedule.schedule_id


async def _open_books(session: Session, firings: Sequence[Firing], now: Timestamp) -> dict[_Key, Book]:
    asked = [(*_key(firing), occasion) for firing in firings for occasion in firing.occasions]
    fired: dict[_Key, dict[Timestamp, Fire]] = {}
    runs: dict[str, dict[str, str]] = {}
    if asked:
        namespaces = [namespace for namespace, _, _ in asked]
        nominals = [occasion.nominal_at for _, _, occasion in asked]
        for row in await session.read(
            "find_fires",
            namespaces=namespaces,
            schedule_ids=[schedule for _, schedule, _ in asked],
            nominal_times=nominals,
        ):
            fire = read_fire(row)
            fired.setdefault((row["namespace"], row["schedule_id"]), {})[fire.nominal_at] = fire
        requests = [occasion.start.request_id for _, _, occasion in asked]
        for row in await session.read("find_requests", namespaces=namespaces, request_ids=requests):
            runs.setdefault(row["namespace"], {})[row["request_id"]] = row["run_id"]
    open_runs = await _open_runs(session, [_key(firing) for firing in firings if firing.overlap != "allow"])
    return {
        (key := _key(firing)): Book(
            firing, now, fired=fired.get(key, {}), runs=runs.get(key[0], {}), open_runs=open_runs.get(key, ())
        )
        for firing in firings
    }


async def _open_runs(session: Session, keys: Sequence[_Key]) -> dict[_Key, list[OpenRun]]:
    found: dict[_Key, list[OpenRun]] = {}
    if keys:
        namespaces, schedule_ids = zip(*keys, strict=True)
        for row in await session.read(
            "open_scheduled_runs", namespaces=namespaces, schedule_ids=schedule_ids, limit=_OPEN_RUNS
        ):
            run = OpenRun(row["run_id"], waits=row["waits"], stops=row["stops"])
            found.setdefault((row["namespace"], row["schedule_id"]), []).append(run)
    return found


async def _cancel(session: Session, book: Book, run_ids: Sequence[str], now: Timestamp, cancel_by: Timestamp) -> None:
    if not run_ids:
        return
    for run_id, row in (await lock_family(session, run_ids, run_ids)).items():
        if run_id in run_ids:
            _, effects = await cancel_locked(session, row, book.cancel_reason, now, cancel_by)
            book.cancelled(run_id, effects)


async def _start(
    session: Session, starts: Sequence[StartRun], now: Timestamp
) -> tuple[Sequence[Outcome], list[Effects]]:
    """As any start is made; all of them are decided, or the transaction begins again."""
    outcomes: Outcomes = [None] * len(starts)
    groups: list[Group[StartRun]] = [(start.run, [(index, start)]) for index, start in enumerate(starts)]
    writing = Writing(session, now, FIRING_TERMS, _NoRng(), outcomes, [])
    await start_runs(writing, groups)
    decided: list[Outcome] = []
    for outcome in outcomes:
        if isinstance(outcome, Busy):
            raise _BusyError
        if outcome is None:
            raise InternalError("a start was left undecided")
        decided.append(outcome)
    return decided, writing.effects


async def _move(session: Session, books: Sequence[Book], now: Timestamp) -> None:
    await record_fires(session, [(book.firing.schedule, fire) for book in books for fire in book.to_record])
    moves = [
        {
            "namespace": book.firing.schedule.namespace,
            "schedule_id": book.firing.schedule.schedule_id,
            "moves": book.firing.moves,
            "next_at": book.firing.next_at,
            "due_at": book.firing.due_at,
            "fired_at": now if book.has_fired else None,
        }
        for book in books
    ]
    await session.read("move_schedules", moves=moves)

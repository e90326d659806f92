"""Bulk test data: a store with very many runs, made in minutes: a few are made by the store itself and then copied by
SQL.

Whatever columns a table has are copied as they are, but for the few that make a run another one: ids, names and times.
Run number `g` was created `g` seconds after BEGAN; which kind it is follows from `g`, so that kinds are mixed evenly.
"""

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import NamedTuple

import asyncpg

from kagzi.core.error_details import ErrorDetail, encode_detail
from kagzi.core.records import Payload, RunKey, RunLease
from kagzi.core.run.commands import (
    BeginSleep,
    BeginStep,
    CompleteRun,
    CompleteStep,
    FailRun,
    Park,
    StartRun,
)
from kagzi.core.run.outcomes import Outcome, Refused
from kagzi.store.protocol import LeaseTerms, Store, Want
from kagzi.system import SystemIds

NAMESPACE = "default"
BEGAN = 1_700_000_000_000_000
"""When the oldest run was created, in microseconds; the crowd lies in the past."""
SPACING_US = 1_000_000
SPACING_MS = SPACING_US // 1_000
FAR_AHEAD = 4_000_000_000_000_000
RARE = 200
"""How many runs of each rare kind there are, whatever the size: lists of them have the same length everywhere."""
SLEEPING_EACH = 11  # one in eleven sleeps: 100,000 beside 1,000,000
FAILED_EACH = 20
TYPE, SLEEPING_TYPE, SCHEDULE, RARE_VERSION = "order", "nap", "nightly", "7"
PAYLOAD = Payload(b'{"amount": 1200, "currency": "EUR"}')


class Kind(NamedTuple):
    """Which of `g` are of this kind (SQL), from which model they are copied, and what of their row is different
    (SQL)."""

    name: str
    model: str
    where: str
    changes: Mapping[str, str] = {}


def run_id(g: int) -> str:
    """A UUIDv7 of that time; the SQL below says the same."""
    milliseconds = BEGAN // 1_000 + g * SPACING_MS
    return f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}-7000-8000-{g:012x}"


def kinds(total: int) -> list[Kind]:
    every = total // RARE
    rare = "g % {every} = {place} AND g % 11 <> 0"
    parent = f"'{run_id(1)}'"
    problem = f"'{encode_detail(ErrorDetail(message='put aside')).decode()}'"

    def place(number: int) -> str:
        return rare.format(every=every, place=number)

    plain = f"g % 11 <> 0 AND g % {every} NOT IN (1, 2, 3, 4, 5, 6, 8)"
    return [
        Kind("sleeping", "sleeping", "g % 11 = 0"),
        Kind("failed", "failed", f"{plain} AND g % {FAILED_EACH} = 0"),
        Kind("completed", "completed", f"{plain} AND g % {FAILED_EACH} <> 0"),
        Kind("labelled", "labelled", place(1)),
        Kind("child", "completed", place(2), {"parent_run_id": parent, "parent_step_id": "'s' || g"}),
        Kind("scheduled", "completed", place(3), {"schedule_id": f"'{SCHEDULE}'"}),
        Kind("problem", "completed", place(4), {"problem": problem}),
        Kind("versioned", "completed", place(5), {"version": f"'{RARE_VERSION}'"}),
        Kind("retrying", "sleeping", place(6), {"retrying_steps": "1"}),
        Kind("waiting", "sleeping", place(8), {"awaits_signal": "1"}),
    ]


# --- the models -------------------------------------------------------------------------------------------------------


async def make_models(store: Store) -> dict[str, str]:
    """One run of each model, made as workers make them. Returns their ids."""
    models = {
        "completed": await _worked(store, {"region": "eu"}),
        "labelled": await _worked(store, {"region": "eu", "vip": "yes"}),
        "failed": await _worked(store, {"region": "eu"}, fails=True),
        "sleeping": await _asleep(store),
    }
    return {name: key.run_id for name, key in models.items()}


async def _worked(store: Store, labels: Mapping[str, str], *, fails: bool = False) -> RunKey:
    leased = await _claimed(store, TYPE, labels)
    for step in ("charge", "ship"):
        await _write(store, BeginStep(run=leased.run, lease=leased.lease, step_id=step, name=step, input=PAYLOAD))
        await _write(store, CompleteStep(run=leased.run, lease=leased.lease, step_id=step, attempt=1, output=PAYLOAD))
    if fails:
        await _write(store, FailRun(run=leased.run, lease=leased.lease, error=ErrorDetail(message="no funds")))
    else:
        await _write(store, CompleteRun(run=leased.run, lease=leased.lease, output=PAYLOAD))
    return leased.run


async def _asleep(store: Store) -> RunKey:
    leased = await _claimed(store, SLEEPING_TYPE, {"region": "eu"})
    await _write(store, BeginSleep(run=leased.run, lease=leased.lease, step_id="nap", name="nap", until=FAR_AHEAD))
    await _write(store, Park(run=leased.run, lease=leased.lease, waits=("nap",), known_seq=0))
    return leased.run


async def _claimed(store: Store, workflow_type: str, labels: Mapping[str, str]) -> RunLease:
    await _write(store, start(workflow_type, labels))
    return (await claim(store, workflow_type))[0]


async def _write(store: Store, command: object) -> Outcome:
    terms = LeaseTerms(until=BEGAN + 15_000_000, renew_before=BEGAN)
    (outcome,), _ = await store.write([command], BEGAN, terms)  # type: ignore[list-item]
    assert not isinstance(outcome, Refused), outcome
    return outcome


def start(workflow_type: str, labels: Mapping[str, str]) -> StartRun:
    ids = SystemIds()
    made = ids.run_id(time.time_ns() // 1_000, NAMESPACE)
    return StartRun(
        run=RunKey(NAMESPACE, made),
        workflow_id=made,
        workflow_type=workflow_type,
        request_id=ids.token(),
        input=PAYLOAD,
        labels=labels,
    )


async def claim(store: Store, workflow_type: str, limit: int = 1) -> list[RunLease]:
    want = Want(NAMESPACE, workflow_type, ("1",), "campaign-worker", limit)
    claimed = await store.claim([want], 7, BEGAN, BEGAN + 15_000_000)
    return [RunLease(each.run, each.lease) for each in getattr(claimed, "runs", claimed)]


# --- copying ----------------------------------------------------------------------------------------------------------

_ID = {
    "postgresql": (
        "(lpad(to_hex({ms} >> 16), 8, '0') || '-' || lpad(to_hex({ms} & 65535), 4, '0') || '-7000-8000-'"
        " || lpad(to_hex(g), 12, '0'))::uuid"
    ),
    "sqlite": "printf('%08x-%04x-7000-8000-%012x', {ms} >> 16, {ms} & 65535, g)",
}


def _copy(dialect: str, table: str, columns: list[str], kind: Kind, source: str) -> str:
    """The statement; `source` gives `g`, and `m` is the model's row. Times that are set move with the creation."""
    created = f"({BEGAN} + g * {SPACING_US})"
    changes = {"run_id": _ID[dialect].format(ms=f"({BEGAN // 1_000} + g * {SPACING_MS})"), "created_at": created}
    if table == "runs":
        changes |= {"workflow_id": "'w-' || g", "request_id": "'r-' || g", **kind.changes}
        for column in ("started_at", "claimed_at", "finished_at"):
            changes[column] = f"m.{column} - m.created_at + {created}"
        changes["due_at"] = "m.due_at + g"
    values = [changes.get(column, f"m.{column}") for column in columns]
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {source} WHERE {kind.where}"


def _models_apart(table: str, models: Mapping[str, str]) -> str:
    """Not every table can be asked by run id quickly, and it grows."""
    ids = ", ".join(f"'{model}'" for model in models.values())
    return f"CREATE TEMP TABLE models_of_{table} AS SELECT * FROM {table} WHERE run_id IN ({ids})"


TABLES = ("runs", "steps", "run_labels")
CHUNK = 50_000
Progress = Callable[[str], None]


async def fill_postgres(url: str, models: Mapping[str, str], total: int, progress: Progress) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET synchronous_commit = off; SET jit = off")
        for table in TABLES:
            rows = await connection.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND "
                "table_name = $1",
                table,
            )
            columns = [row["column_name"] for row in rows]
            await connection.execute(_models_apart(table, models))
            for first in range(1, total + 1, CHUNK):  # in the order of time, as they would have come
                last = min(first + CHUNK - 1, total)
                for kind in kinds(total):
                    source = f"(SELECT * FROM models_of_{table} WHERE run_id = '{models[kind.model]}') AS m,"
                    source += f" generate_series({first}::bigint, {last}::bigint) AS g"
                    await connection.execute(_copy("postgresql", table, columns, kind, source), timeout=None)
            progress(f"{table}: copied")
        await connection.execute("VACUUM (ANALYZE)", timeout=None)
        await connection.execute("CHECKPOINT", timeout=None)
    finally:
        await connection.close()


def fill_sqlite(path: str, models: Mapping[str, str], total: int, progress: Progress) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -400000")
        for table in TABLES:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            connection.execute(_models_apart(table, models))
            for first in range(1, total + 1, CHUNK):
                last = min(first + CHUNK - 1, total)
                for kind in kinds(total):
                    numbers = (
                        f"WITH RECURSIVE n (g) AS (SELECT {first} UNION ALL SELECT g + 1 FROM n WHERE g < {last}) "
                    )
                    source = f"(SELECT * FROM models_of_{table} WHERE run_id = '{models[kind.model]}') AS m, n"
                    connection.execute("BEGIN")
                    connection.execute(numbers + _copy("sqlite", table, columns, kind, source))
                    connection.execute("COMMIT")
            progress(f"{table}: copied")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

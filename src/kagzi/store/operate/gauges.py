"""Gauges of the whole server: waiting runs, open runs, workers."""

from collections.abc import Mapping, Sequence

from ...core.records import RunKey
from ...core.states import OPEN, WorkerStatus
from ...core.times import Timestamp
from ...core.workflow_types.type_key import TypeKey
from ..protocol.gauges import OpenRunsGauge, QueueGauge, RunType, WorkersGauge
from ..sessions import Purpose, Session, Sessions, scan, verb

_LEAST = 100  # each type, or namespace and status, counts at least up to this many runs
_EVERYTHING = ""  # the namespace whose scan turns the server itself uses


async def _queues(
    session: Session, namespace: str, alive_since: Timestamp, types: int, runs: int
) -> Sequence[QueueGauge]:
    keys = [
        {"namespace": row["namespace"], "workflow_type": row["workflow_type"]}
        for row in await session.read("pending_types", limit=types)
    ]
    if not keys:
        return ()
    cap = max(_LEAST, runs // len(keys))
    gauges = [
        QueueGauge(
            key=TypeKey(row["namespace"], row["workflow_type"]),
            waiting=row["waiting"],
            oldest_since=row["oldest_since"],
            served=bool(row["served"]),
            limited=bool(row["limited"]),
        )
        for row in await session.read("queue_gauges", keys=keys, alive_since=alive_since, cap=cap)
    ]
    if len(keys) == types:
        [rest] = await session.read("queue_gauge_of_rest", **keys[-1], cap=max(_LEAST, runs // 10))
        if rest["waiting"]:
            gauges.append(QueueGauge(key=TypeKey("", ""), waiting=rest["waiting"], oldest_since=rest["oldest_since"]))
    return gauges


async def _open_runs(session: Session, namespace: str, namespaces: int, runs: int) -> Sequence[OpenRunsGauge]:
    names = [row["namespace"] for row in await session.read("first_namespaces", limit=namespaces)]
    if not names:
        return ()
    cap = max(_LEAST, runs // (len(names) * len(OPEN)))
    rows = await session.read("open_run_gauges", namespaces=[{"namespace": name} for name in names], cap=cap)
    return [
        OpenRunsGauge(
            namespace=row["namespace"],
            by_status={status: row[status.value] for status in sorted(OPEN)},
            retrying=row["retrying"],
            awaiting_signal=row["awaiting_signal"],
        )
        for row in rows
    ]


async def _workers(session: Session, alive_since: Timestamp, *, workers: int) -> Sequence[WorkersGauge]:
    rows = await session.read("worker_gauges", alive_since=alive_since, limit=workers)
    return [
        WorkersGauge(
            namespace=row["namespace"],
            status=WorkerStatus.DRAINING if row["draining"] else WorkerStatus.ONLINE,
            workers=row["workers"],
            slots=row["slots"],
            used=row["used"],
        )
        for row in rows
    ]


async def _first_names(session: Session, *, namespaces: int, types: int) -> tuple[Sequence[str], Sequence[str]]:
    return (
        [row["namespace"] for row in await session.read("first_namespaces", limit=namespaces)],
        [row["workflow_type"] for row in await session.read("first_workflow_types", limit=types)],
    )


async def _types_of(session: Session, runs: Sequence[RunKey], /) -> Mapping[str, RunType]:
    keys = [{"namespace": run.namespace, "run_id": run.run_id} for run in runs]
    rows = await session.read("types_of", keys=keys)
    return {row["run_id"]: RunType(row["workflow_type"], row["started_at"]) for row in rows}


class Gauges(Sessions):
    """Implements `store.protocol.GaugeVerbs`, except `connections`."""

    _queue_gauges = scan(_queues)
    _open_run_gauges = scan(_open_runs)
    worker_gauges = verb(Purpose.READ, _workers)
    first_names = verb(Purpose.READ, _first_names)
    types_of = verb(Purpose.READ, _types_of)

    async def queue_gauges(self, alive_since: Timestamp, *, types: int, runs: int) -> Sequence[QueueGauge]:
        return await self._queue_gauges(_EVERYTHING, alive_since, types, runs)

    async def open_run_gauges(self, *, namespaces: int, runs: int) -> Sequence[OpenRunsGauge]:
        return await self._open_run_gauges(_EVERYTHING, namespaces, runs)

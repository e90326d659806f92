"""Runs that concern each other: locking them together, and telling those who wait for an end."""

from collections.abc import Iterable, Sequence

from ...core.error_details import ErrorCode, ErrorDetail
from ...core.outcomes import Stirred
from ...core.records import Lease, RunKey
from ...core.states import RUN_STATUS_OF_CODE, RunCode
from ...core.times import Timestamp
from .connections import Row, Session
from .rows import write_error

End = tuple[str, RunCode, ErrorDetail | None]
"""Run id, how it ended, and why."""


TOLD = (RunCode.PENDING, RunCode.RUNNING, RunCode.SLEEPING)
"""Statuses in which somebody has to hear of news for a run. PENDING: a claim may just have passed it over, since it was locked."""


class MovedError(Exception):
    """Something else was committed in between: roll back and begin again."""


async def lock_family(session: Session, run_ids: Iterable[str], ending: Iterable[str]) -> dict[str, Row]:
    """Lock these runs, and who waits for those that may end. A watcher that is added meanwhile is met by tell_parents."""
    rows = await session.read("lock_family", sorted(run_ids), sorted(ending))
    return {row["run_id"]: row for row in rows}


async def tell_parents(session: Session, ends: Sequence[End], now: Timestamp) -> tuple[Stirred, ...]:
    """Give the results of runs that have ended in this transaction to the steps that wait for them."""
    return tuple(each for each, _ in await tell_each_parent(session, ends, now))


async def tell_each_parent(session: Session, ends: Sequence[End], now: Timestamp) -> list[tuple[Stirred, str]]:
    """The same; answers with each parent the last of the runs it was told of."""
    if not ends:
        return []
    errors = [None if status == RunCode.COMPLETED else _child_error(run_id, status, e) for run_id, status, e in ends]
    rows = await session.read("tell_parents", now, [end[0] for end in ends], [write_error(error) for error in errors])
    return [(stirred(row, row["was"]), ends[row["last"] - 1][0]) for row in rows if row["was"] in TOLD]


def stirred(row: Row, was: int) -> Stirred:
    """`was`: the status in which the result met the run."""
    run = RunKey(row["namespace"], row["run_id"])
    if was == RunCode.RUNNING:
        lease = Lease(row["lease"], row["nonce"])
        return Stirred(run, row["workflow_type"], woken=False, holder=lease, worker_id=row["worker_id"])
    return Stirred(run, row["workflow_type"], woken=True)


def _child_error(run_id: str, status: RunCode, error: ErrorDetail | None) -> ErrorDetail:
    cause = error or ErrorDetail()
    how = RUN_STATUS_OF_CODE[status].value
    return ErrorDetail(
        code=ErrorCode.CANCELLED if status == RunCode.CANCELLED else ErrorCode.USER,
        kind=cause.kind,
        type="kagzi.core.errors.ChildError",
        message=f"run {run_id} {how}: {cause.text}" if cause.text else f"run {run_id} {how}",
        subject="run",
        subject_id=run_id,
        cause=error,
    )

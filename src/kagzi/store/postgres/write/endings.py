"""Runs that concern each other: locking them together, and telling those who wait for an end."""

from collections.abc import Iterable, Sequence

from ....core.error_details import ErrorDetail
from ....core.records import Lease, RunKey
from ....core.run.children import child_error
from ....core.run.control import NOTIFIED
from ....core.run.outcomes import Stirred
from ....core.states import RunCode
from ....core.times import Timestamp
from ...rows import write_error
from ..connection.connection import Row, Session

End = tuple[str, RunCode, ErrorDetail | None]
"""Run id, how it ended, and why."""


class MovedError(Exception):
    """Something else was committed in between: roll back and begin again."""


async def lock_family(session: Session, run_ids: Iterable[str], ending: Iterable[str]) -> dict[str, Row]:
    """Lock these runs, and who waits for those that may end. A watcher that is added meanwhile is met by tell_parents."""
    rows = await session.read("lock_family", run_ids=sorted(run_ids), ending=sorted(ending))
    return {row["run_id"]: row for row in rows}


async def tell_parents(session: Session, ends: Sequence[End], now: Timestamp) -> tuple[Stirred, ...]:
    """Give the results of runs that have ended in this transaction to the steps that wait for them."""
    return tuple(each for each, _ in await tell_each_parent(session, ends, now))


async def tell_each_parent(session: Session, ends: Sequence[End], now: Timestamp) -> list[tuple[Stirred, str]]:
    """The same; answers with each parent the last of the runs it was told of."""
    if not ends:
        return []
    errors = [None if status == RunCode.COMPLETED else child_error(run_id, status, e) for run_id, status, e in ends]
    rows = await session.read(
        "tell_parents", now=now, run_ids=[end[0] for end in ends], errors=[write_error(error) for error in errors]
    )
    return [(stirred(row, row["was"]), ends[row["last"] - 1][0]) for row in rows if row["was"] in NOTIFIED]


async def link_children(session: Session, links: Iterable[tuple[str, str, str, str]]) -> None:
    """`links`: child, parent, the parent's step and their namespace."""
    rows = [
        {"child_run_id": child, "parent_run_id": parent, "parent_step_id": step_id, "namespace": namespace}
        for child, parent, step_id, namespace in links
    ]
    await session.read("link_children", links=rows)


def stirred(row: Row, was: int) -> Stirred:
    """`was`: the status in which the result met the run."""
    run = RunKey(row["namespace"], row["run_id"])
    if was == RunCode.RUNNING:
        lease = Lease(row["lease"], row["nonce"])
        return Stirred(run, row["workflow_type"], woken=False, holder=lease, worker_id=row["worker_id"])
    return Stirred(run, row["workflow_type"], woken=True)

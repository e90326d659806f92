"""Ends of runs and the runs they affect: locks them together, and notifies those that wait for an end."""

from collections.abc import Iterable, Sequence

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.error_details import Child, ErrorDetail
from ....core.errors import Unavailable
from ....core.records import Lease, RunKey
from ....core.run.children import child_error
from ....core.run.control import RunHead, result_effects
from ....core.states import RunCode
from ....core.times import Timestamp
from ...rows import write_error
from ..connection.connection import Row, Session

End = tuple[str, RunCode, ErrorDetail | None]
"""Run id, how it ended, and why."""


class MovedError(Exception):
    """Another transaction committed in between: roll back and begin again."""


async def lock_family(session: Session, run_ids: Iterable[str], ending: Iterable[str]) -> dict[str, Row]:
    """Lock these runs, and the runs that wait for those in `ending`. notify_parents handles watchers added later."""
    rows = await session.read("lock_family", run_ids=sorted(run_ids), ending=sorted(ending))
    return {row["run_id"]: row for row in rows}


async def notify_parents(session: Session, endings: Sequence[End], now: Timestamp) -> Effects:
    """Deliver the results of runs that ended in this transaction to the steps that wait for them."""
    if not endings:
        return NO_EFFECTS
    named = [run_id for run_id, status, _ in endings if status != RunCode.COMPLETED]
    names = await session.read("names_of_runs", run_ids=named) if named else ()
    children = {row["run_id"]: Child(row["run_id"], row["workflow_type"], row["workflow_id"]) for row in names}
    errors = [
        None if status == RunCode.COMPLETED else child_error(children[run_id], status, error)
        for run_id, status, error in endings
    ]
    rows = await session.read(
        "notify_parents", now=now, run_ids=[end[0] for end in endings], errors=[write_error(error) for error in errors]
    )
    return merge(result_effects(run_head(row)) for row in rows)


async def link_children(session: Session, links: Iterable[tuple[str, str, str, str]]) -> None:
    """`links`: child, parent, the parent's step and their namespace."""
    rows = [
        {"child_run_id": child, "parent_run_id": parent, "parent_step_id": step_id, "namespace": namespace}
        for child, parent, step_id, namespace in links
    ]
    await session.read("link_children", links=rows)


def run_head(row: Row) -> RunHead:
    return RunHead(
        RunKey(row["namespace"], row["run_id"]),
        row["workflow_type"],
        row["status"],
        Lease(row["lease"], row["nonce"]),
        row["worker_id"],
        row.get("has_children", False),
    )


def run_locked(run: str) -> Unavailable:
    return Unavailable(f"run {run} is locked by another transaction. Try again.")


async def note_pause(session: Session, run_id: str, what: str, now: Timestamp, note: ErrorDetail) -> None:
    """Record in the history that the run was paused or resumed."""
    await session.read("note_pause", run_id=run_id, what=what, now=now, note=write_error(note))

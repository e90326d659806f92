"""Signals: bound to the step that has waited longest, or buffered in order until a step waits."""

from functools import partial

from ....core.effects import NO_EFFECTS, Effects
from ....core.ids import is_uuid
from ....core.limits import REQUEST_RUNS
from ....core.records import RunKey
from ....core.run.commands import SendSignal
from ....core.run.control import refuse_signal, result_effects, runs_to_search
from ....core.run.handing_on import write_start_request
from ....core.run.outcomes import Refused
from ....core.states import RUN_STATUS_OF_CODE
from ....core.times import Timestamp
from ...protocol import SignalCheck, Signalled, fits_any_run
from ...rows import write_strings
from ..connection.connection import Row, Rows, Session
from ..connection.failures import CONTENTION
from .endings import run_head, run_locked

_TRIES = 3


async def signal_run(
    session: Session,
    namespace: str,
    *,
    run_id: str = "",
    workflow_id: str = "",
    signal: SendSignal,
    now: Timestamp,
    check: SignalCheck = fits_any_run,
) -> tuple[Signalled | Refused | None, Effects]:
    if run_id and not is_uuid(run_id):
        return None, NO_EFFECTS
    for _ in range(_TRIES):
        try:
            async with session.transaction():
                run = RunKey(namespace, run_id)
                return await give_signal(session, run, signal, now, workflow_id=workflow_id, check=check)
        except CONTENTION:
            continue
    raise run_locked(run_id or workflow_id)


async def give_signal(
    session: Session,
    run: RunKey,
    signal: SendSignal,
    now: Timestamp,
    *,
    workflow_id: str = "",
    check: SignalCheck = fits_any_run,
) -> tuple[Signalled | Refused | None, Effects]:
    """Runs in the caller's transaction. Without a run id: the open run with that workflow id. With both: that run,
    unless an earlier one with that workflow id already has the signal."""
    row = await lock_signalled_run(
        session, run.namespace, run_id=run.run_id, workflow_id=workflow_id, request_id=signal.request_id
    )
    if row is None:
        return None, NO_EFFECTS
    run = RunKey(run.namespace, row["run_id"])
    [waiting] = await session.read(
        "find_signal",
        run_id=run.run_id,
        request_id=signal.request_id,
        name=signal.name,
    )
    if waiting["known"] is not None:
        return Signalled(run, waiting["known"]), NO_EFFECTS
    waited_for = waiting["step_id"] is not None
    refused = refuse_signal(run.run_id, row["status"], waited_for=waited_for, unread=row["unread_signals"])
    if refused is None:
        refused = check(row["workflow_type"], row["version"] or "")
    if refused is not None:
        return refused, NO_EFFECTS
    payload = signal.payload
    await session.read(
        "give_signal",
        run_id=run.run_id,
        now=now,
        name=signal.name,
        request_id=signal.request_id,
        payload=payload.data,
        payload_meta=write_strings(payload.metadata),
        step_id=waiting["step_id"],
        start_request=write_start_request(signal.start),
    )
    if waiting["step_id"] is None:
        return Signalled(run, delivered=False), NO_EFFECTS
    return Signalled(run, delivered=True), result_effects(run_head(row))


async def lock_signalled_run(
    session: Session, namespace: str, *, run_id: str, workflow_id: str, request_id: str
) -> Row | None:
    """The run that has this request already, if it is a repeat. Else the run with that id, else the open one with that
    workflow id, else the latest."""
    row = await _lock_run(session, namespace, run_id=run_id, workflow_id=workflow_id)
    if row is None:
        return None
    runs = runs_to_search(
        by_workflow_id=bool(workflow_id), has_ended_runs=row["has_ended_runs"], continued=row["continued"]
    )
    # Under the lock: the signals of earlier runs do not change while this one is open.
    if runs == "earlier":
        had = await ended_run_with_signal(session, namespace, workflow_id, request_id)
    elif runs == "later":
        had = await session.read(
            "later_run_with_signal", run_id=row["run_id"], request_id=request_id, most_runs=REQUEST_RUNS
        )
    else:
        had = ()
    return await _lock_run(session, namespace, run_id=had[0]["run_id"], workflow_id="") if had else row


async def ended_run_with_signal(session: Session, namespace: str, workflow_id: str, request_id: str) -> Rows:
    """At most one, with its status."""
    return await session.read(
        "ended_run_with_signal",
        namespace=namespace,
        workflow_id=workflow_id,
        request_id=request_id,
        most_runs=REQUEST_RUNS,
    )


async def _lock_run(session: Session, namespace: str, *, run_id: str, workflow_id: str) -> Row | None:
    """A run may continue as new while we wait for its lock. The statement that waited found the old run; only the next
    statement sees the new one."""
    find = partial(
        session.read, "lock_signalled_run", namespace=namespace, run_id=run_id or None, workflow_id=workflow_id
    )
    rows = await find()
    while rows and not run_id and RUN_STATUS_OF_CODE[rows[0]["status"]].ended:
        latest = await find()
        if not latest or latest[0]["run_id"] == rows[0]["run_id"]:
            break
        rows = latest
    return rows[0] if rows else None

"""Signals: bound to the step that waits longest, or kept in order until somebody waits."""

from ....core.effects import NO_EFFECTS, Effects
from ....core.ids import is_uuid
from ....core.limits import SIGNALS_BUFFERED
from ....core.records import RunKey
from ....core.run.commands import SendSignal
from ....core.run.control import refuse_signal, result_effects
from ....core.run.outcomes import Refused
from ....core.times import Timestamp
from ...protocol import Signalled
from ...rows import write_strings
from ..connection.connection import Session
from ..connection.failures import CONTENTION
from .endings import run_head, run_locked

_TRIES = 3


async def signal_run(
    session: Session, namespace: str, *, run_id: str, workflow_id: str, signal: SendSignal, now: Timestamp
) -> tuple[Signalled | Refused | None, Effects]:
    if run_id and not is_uuid(run_id):
        return None, NO_EFFECTS
    for _ in range(_TRIES):
        try:
            async with session.transaction():
                return await give_signal(session, RunKey(namespace, run_id), signal, now, workflow_id=workflow_id)
        except CONTENTION:
            continue
    raise run_locked(run_id or workflow_id)


async def give_signal(
    session: Session, run: RunKey, signal: SendSignal, now: Timestamp, *, workflow_id: str = ""
) -> tuple[Signalled | Refused | None, Effects]:
    """In the caller's transaction. Without a run id: the open run with that workflow id."""
    rows = await session.read(
        "lock_signalled_run", namespace=run.namespace, run_id=run.run_id or None, workflow_id=workflow_id
    )
    if not rows:
        return None, NO_EFFECTS
    [row] = rows
    run = RunKey(run.namespace, row["run_id"])
    [waiting] = await session.read(
        "find_signal",
        run_id=run.run_id,
        request_id=signal.request_id,
        name=signal.name,
        most_buffered=SIGNALS_BUFFERED,
    )
    if waiting["known"] is not None:
        return Signalled(run, waiting["known"]), NO_EFFECTS
    waited_for = waiting["step_id"] is not None
    refused = refuse_signal(run.run_id, row["status"], waited_for=waited_for, buffered=waiting["unbound"])
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
    )
    if waiting["step_id"] is None:
        return Signalled(run, delivered=False), NO_EFFECTS
    return Signalled(run, delivered=True), result_effects(run_head(row))

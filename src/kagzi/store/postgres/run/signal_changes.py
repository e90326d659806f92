"""Replaces or drops a signal whose value no code has received."""

from functools import partial

from ....core.effects import NO_EFFECTS, Effects
from ....core.error_details import ErrorDetail
from ....core.ids import is_uuid
from ....core.pages.pauses import RESUMED, pause_note
from ....core.records import RunKey
from ....core.run import misfits, refusals
from ....core.run.commands import SignalReplacement
from ....core.run.control import RunHead, reopen_effects
from ....core.run.misfits import Misfit
from ....core.run.outcomes import Refused
from ....core.run.state import NEVER
from ....core.states import RUN_STATUS_OF_CODE, RunStatus
from ....core.times import Timestamp
from ...protocol import SignalCheck, SignalReplaced, fits_any_run
from ...rows import read_error, require_payload, write_error, write_strings
from ..connection.connection import Row, Session
from ..connection.failures import CONTENTION
from ..write.endings import note_pause, run_head, run_locked
from ..write.signals import lock_signalled_run

_TRIES = 3


async def replace_signal(
    session: Session,
    namespace: str,
    *,
    run_id: str = "",
    workflow_id: str = "",
    change: SignalReplacement,
    now: Timestamp,
    check: SignalCheck = fits_any_run,
) -> tuple[SignalReplaced | Refused | None, Effects]:
    if run_id and not is_uuid(run_id):
        return None, NO_EFFECTS
    for _ in range(_TRIES):
        try:
            async with session.transaction():
                row = await lock_signalled_run(
                    session, namespace, run_id=run_id, workflow_id=workflow_id, request_id=change.request_id
                )
                if row is None:
                    return None, NO_EFFECTS
                head, version = run_head(row), row["version"] or ""
                return await _replace(session, head, change, now, partial(check, version=version))
        except CONTENTION:
            continue
    raise run_locked(run_id or workflow_id)


async def _replace(
    session: Session,
    head: RunHead,
    change: SignalReplacement,
    now: Timestamp,
    check: "partial[Refused | None]",
) -> tuple[SignalReplaced | Refused, Effects]:
    run, status = head.run, RUN_STATUS_OF_CODE[head.status]
    replaced = SignalReplaced(run, status, resumed=False)
    for known in await session.read("signal_by_request", run_id=run.run_id, request_id=change.request_id):
        return replaced if _is_repeat(change, known) else misfits.request_used(change.request_id), NO_EFFECTS
    if status.ended:
        return refusals.takes_no_signals(run.run_id, status.value), NO_EFFECTS
    if (refused := check(head.workflow_type)) is not None:
        return refused, NO_EFFECTS
    problem = None
    if status is RunStatus.PAUSED:
        [paused] = await session.read("problem_of", run_id=run.run_id)
        problem = read_error(paused["problem"])
    misfit = misfits.misfit_of(problem)
    if problem is not None and misfit is not None and misfit.signal == change.name:
        resumed = await _replace_received(session, run, change, problem, misfit, now)
        if isinstance(resumed, Refused):
            return resumed, NO_EFFECTS
        return SignalReplaced(run, resumed, resumed=True), reopen_effects(head, resumed)
    waiting = await session.read("signal_in_place", run_id=run.run_id, name=change.name, step_id=None)
    if not waiting:
        received = await session.read("was_received", run_id=run.run_id, name=change.name, dropped=misfits.DROPPED)
        return misfits.not_replaceable(run.run_id, change.name, received=bool(received)), NO_EFFECTS
    await _swap(session, run, waiting[0]["number"], change, None, now)
    await session.read("note_change", run_id=run.run_id, dropped=int(change.payload is None))
    return replaced, Effects(changed=(run,))


def _is_repeat(change: SignalReplacement, row: Row) -> bool:
    payload = require_payload(row["payload"], row["payload_meta"])
    return misfits.is_repeat(change, name=row["name"], payload=payload, step_id=row["step_id"])


async def _replace_received(  # noqa: PLR0917  the verb's arguments, and what was read
    session: Session,
    run: RunKey,
    change: SignalReplacement,
    problem: ErrorDetail,
    misfit: Misfit,
    now: Timestamp,
) -> RunStatus | Refused:
    """Replaces the value that the run is paused for, or drops it so that the step waits again, and resumes the run."""
    step_id = misfit.step_id
    bound = await session.read("signal_in_place", run_id=run.run_id, name=change.name, step_id=step_id)
    if not bound:
        return misfits.not_replaceable(run.run_id, change.name, received=True)
    [resumed] = await session.read("resume_run", run_id=run.run_id, now=now)
    rejection = write_error(misfits.rejection_of(problem, misfit, change))
    await session.read(
        "keep_rejected", run_id=run.run_id, step_id=step_id, now=now, rejection=rejection, seq=resumed["seq"]
    )
    await session.read("reopen_wait", run_id=run.run_id, step_id=step_id, never=NEVER)
    await _swap(session, run, bound[0]["number"], change, step_id, now)
    if change.payload is None:
        for following in await session.read("signal_in_place", run_id=run.run_id, name=change.name, step_id=None):
            await session.read("bind_signal", run_id=run.run_id, number=following["number"], step_id=step_id)
    await session.read("give_bound_signal", run_id=run.run_id, step_id=step_id, now=now)
    await note_pause(session, run.run_id, RESUMED, now, pause_note(run.run_id))
    return RUN_STATUS_OF_CODE[resumed["status"]]


async def _swap(  # noqa: PLR0917  one row for another
    session: Session, run: RunKey, number: int, change: SignalReplacement, step_id: str | None, now: Timestamp
) -> None:
    """Puts the new value in the place of the old one, which is never delivered. A drop leaves the place empty."""
    payload = misfits.kept_payload(change)
    dropped = change.payload is None
    [aside] = await session.read("put_aside_signal", run_id=run.run_id, number=number, dropped=misfits.DROPPED)
    await session.read(
        "insert_signal",
        run_id=run.run_id,
        number=aside["number"] + 1 if dropped else number,
        now=now,
        name=change.name,
        request_id=change.request_id,
        payload=payload.data,
        payload_meta=write_strings(payload.metadata),
        step_id=misfits.DROPPED if dropped else step_id,
        start_request=None if dropped else aside["start_request"],
    )

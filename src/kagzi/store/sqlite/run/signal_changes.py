"""Replaces or drops a signal whose value no code has received."""

from ....core.effects import NO_EFFECTS, Effects
from ....core.error_details import ErrorDetail
from ....core.pages.pauses import RESUMED, pause_note
from ....core.records import Payload, RunKey
from ....core.run import misfits, refusals
from ....core.run.commands import SignalReplacement
from ....core.run.control import RunHead, reopen_effects
from ....core.run.misfits import Misfit
from ....core.run.outcomes import Refused
from ....core.states import RUN_STATUS_OF_CODE, RunStatus
from ....core.times import Timestamp
from ...protocol import SignalCheck, SignalReplaced, fits_any_run
from ...rows import read_error, read_labels, require_storable, write_error, write_strings
from ..connection.connection import Row
from ..write.endings import note_pause, run_head, wake
from ..write.fast_path import Writer
from ..write.signals import find_signalled_run


def replace_signal(
    writer: Writer,
    namespace: str,
    *,
    run_id: str = "",
    workflow_id: str = "",
    change: SignalReplacement,
    now: Timestamp,
    check: SignalCheck = fits_any_run,
) -> tuple[SignalReplaced | Refused | None, Effects]:
    """See Store.replace_signal."""
    metadata = misfits.kept_payload(change).metadata or {}
    require_storable(name=change.name, request_id=change.request_id, metadata="".join([*metadata, *metadata.values()]))
    database = writer.database
    row = find_signalled_run(writer, namespace, run_id=run_id, workflow_id=workflow_id, request_id=change.request_id)
    if row is None:
        return None, NO_EFFECTS
    head = run_head(row)
    run, status = head.run, RUN_STATUS_OF_CODE[head.status]
    known = database.row("signal_by_request", (run.run_id, change.request_id))
    if known is not None:
        if not _is_repeat(change, known):
            return misfits.request_used(change.request_id), NO_EFFECTS
        return SignalReplaced(run, status, resumed=False), NO_EFFECTS
    if status.ended:
        return refusals.takes_no_signals(run.run_id, status.value), NO_EFFECTS
    if (refused := check(head.workflow_type, row[8] or "")) is not None:
        return refused, NO_EFFECTS
    problem = _problem(writer, run) if status is RunStatus.PAUSED else None
    misfit = misfits.misfit_of(problem)
    if problem is not None and misfit is not None and misfit.signal == change.name:
        return _replace_received(writer, head, change, problem, misfit, now)
    waiting = database.row("next_signal", (run.run_id, change.name))
    if waiting is None:
        received = database.row("was_received", (run.run_id, change.name, misfits.DROPPED)) is not None
        return misfits.not_replaceable(run.run_id, change.name, received=received), NO_EFFECTS
    _swap(writer, run, waiting[0], change, None, now)
    if change.payload is None:
        database.run("count_unread", (-1, run.run_id))
    return SignalReplaced(run, status, resumed=False), Effects(changed=(run,))


def _is_repeat(change: SignalReplacement, row: Row) -> bool:
    name, data, meta, step_id = row
    payload = Payload(data, read_labels(meta) if meta else None)
    return misfits.is_repeat(change, name=name, payload=payload, step_id=step_id)


def _problem(writer: Writer, run: RunKey) -> ErrorDetail | None:
    row = writer.database.row("problem_of", (run.run_id,))
    return None if row is None else read_error(row[0])


def _replace_received(  # noqa: PLR0917  the verb's arguments, and what was read
    writer: Writer,
    head: RunHead,
    change: SignalReplacement,
    problem: ErrorDetail,
    misfit: Misfit,
    now: Timestamp,
) -> tuple[SignalReplaced | Refused, Effects]:
    """Replaces the value that the run is paused for, or drops it so that the step waits again, and resumes the run."""
    database, run, step_id = writer.database, head.run, misfit.step_id
    bound = database.row("signal_of_step", (run.run_id, change.name, step_id))
    if bound is None:
        return misfits.not_replaceable(run.run_id, change.name, received=True), NO_EFFECTS
    rejection = write_error(misfits.rejection_of(problem, misfit, change))
    place = {"run_id": run.run_id, "step_id": step_id}
    database.run("keep_rejected", place | {"error": rejection, "seq": wake(writer, run, now, waits=1), "now": now})
    database.run("reopen_wait", place)
    _swap(writer, run, bound[0], change, step_id, now)
    payload = None if change.payload is None else (change.payload.data, write_strings(change.payload.metadata))
    if payload is None and (following := database.row("next_signal", (run.run_id, change.name))) is not None:
        database.run("bind_signal", (step_id, run.run_id, following[0]))
        database.run("count_unread", (-1, run.run_id))
        payload = following[1], following[2]
    if payload is not None:
        output = {"output": payload[0], "output_meta": payload[1]}
        database.run("give_signal", place | output | {"seq": wake(writer, run, now, waits=-1), "now": now})
    resumed = database.row("resume_run", {"run_id": run.run_id, "now": now})
    assert resumed is not None  # the run is PAUSED
    note_pause(writer, run.run_id, RESUMED, now, pause_note(run.run_id))
    status = RUN_STATUS_OF_CODE[resumed[0]]
    return SignalReplaced(run, status, resumed=True), reopen_effects(head, status)


def _swap(  # noqa: PLR0917  one row for another
    writer: Writer, run: RunKey, number: int, change: SignalReplacement, step_id: str | None, now: Timestamp
) -> None:
    """Puts the new value in the place of the old one, which is never delivered. A drop leaves the place empty."""
    database, payload = writer.database, misfits.kept_payload(change)
    last = database.row("last_signal", (run.run_id,))
    end = (last[0] if last else 0) + 1
    place = {"run_id": run.run_id, "number": number, "end": end, "dropped": misfits.DROPPED}
    aside = database.row("put_aside_signal", place)
    assert aside is not None  # it was just read
    dropped = change.payload is None
    parameters = {"run_id": run.run_id, "number": end + 1 if dropped else number, "name": change.name, "now": now}
    value = {"payload": payload.data, "meta": write_strings(payload.metadata), "request_id": change.request_id}
    parameters |= {"step_id": misfits.DROPPED if dropped else step_id, "start_request": None if dropped else aside[0]}
    database.run("insert_signal", parameters | value)

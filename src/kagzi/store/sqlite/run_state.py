"""Loads the state of a run that a command is decided on (core/run), and saves what changed."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from ...core import limits
from ...core.commands import (
    BeatStep,
    BeginStep,
    ClosingCommand,
    CompleteRun,
    DecideRace,
    FailRun,
    FailStep,
    Park,
    SetStatus,
    StartChild,
    StepCommand,
    WaitSignal,
)
from ...core.limits import MESSAGE_SOFT_BYTES, STEPS_PER_RUN
from ...core.outcomes import Outcome, RunClosed
from ...core.records import Lease, Payload
from ...core.run.state import RETURNS_STEP, AttemptState, RunState, SignalState, StepState
from ...core.run.steps import Beginning
from ...core.sizes import STEP_BYTES, error_bytes, payload_bytes
from ...core.states import RunCode, StepCode
from .children import create_children, find_relatives
from .connection import Row
from .continue_as_new import create_successor
from .ends import tell_end
from .fences import NEVER, Fence
from .rows import (
    read_error,
    read_mapping,
    read_payload,
    read_retry,
    write_error,
    write_json,
    write_mapping,
    write_retry,
)
from .wave import Wave

_PAGE_STEPS = MESSAGE_SOFT_BYTES // STEP_BYTES + 2  # more than fit into a page, however small they are
_NO_PAYLOADS = (None,) * 5
_NEED_FENCE_ONLY = frozenset((*get_args(StepCommand), Park))
_RUNNING = int(RunCode.RUNNING)


# --- load -------------------------------------------------------------------------------------------------------------


def load(wave: Wave, command: StepCommand | ClosingCommand) -> RunState | None:
    """The run, and of its steps, attempts, signals and relatives what matters to this command. None: there is no such run."""
    run = _held(wave, command) or _read(wave, command)
    if run is None:
        return None
    step = None
    if (step_id := _named_step(run, command)) is not None:
        statement = "step_with_payloads" if isinstance(command, RETURNS_STEP) else "step_state"
        if (row := wave.database.row(statement, (run.run.run_id, step_id))) is not None:
            step = run.steps[step_id] = _step_state(row)
    if isinstance(command, (BeginStep, FailStep)):
        if step is not None:
            _load_attempt(wave, run, step, command)
    elif run.status == _RUNNING and run.lease == command.lease:  # else it is a repeat at best, decided by the step
        _load_more(wave, run, command)
    if isinstance(command, StartChild):
        run.relatives = find_relatives(wave, command, step)
    if run.seq >= STEPS_PER_RUN and isinstance(command, Beginning):
        run.step_count = _count_steps(wave, run)
    return run


def _held(wave: Wave, command: StepCommand | ClosingCommand) -> RunState | None:
    """The run as its fence knows it, which is all that matters to its steps and waits. None: the run must be read."""
    fence = wave.fences.get(command.run.run_id)
    if (
        fence is None
        or type(command) not in _NEED_FENCE_ONLY
        or not fence.admits(command.lease)
        or fence.namespace != command.run.namespace
        or fence.cancelling
        or fence.pausing
    ):
        return None
    return RunState(
        run=command.run,
        status=_RUNNING,
        lease=command.lease,
        read_seq=fence.seq,
        seq=fence.seq,
        deadline_at=None if fence.deadline_at == NEVER else fence.deadline_at,
        worker_id=fence.worker_id,
    )


def _read(wave: Wave, command: StepCommand | ClosingCommand) -> RunState | None:
    row = wave.database.row("run_state", (command.run.run_id,))
    return None if row is None or row[0] != command.run.namespace else _run_state(command, row)


def _load_more(wave: Wave, run: RunState, command: StepCommand | ClosingCommand) -> None:
    if isinstance(command, Park):
        _load_waits(wave, run, command)
    elif isinstance(command, DecideRace):
        _load_losers(wave, run, command)
    elif isinstance(command, WaitSignal) and not run.steps:
        _load_signal(wave, run, command)


def _named_step(run: RunState, command: StepCommand | ClosingCommand) -> str | None:
    if isinstance(command, (CompleteRun, FailRun)):
        return command.after_step if run.cancel_requested_at is not None and command.after_step else None
    return getattr(command, "step_id", None)


def _run_state(command: StepCommand | ClosingCommand, row: Row) -> RunState:
    return RunState(
        run=command.run,
        status=row[1],
        lease=Lease(row[2], row[3]),
        read_seq=row[4],
        seq=row[4],
        attempt=row[5],
        ready_at=row[6],
        due_at=row[7],
        wait_reason=row[8],
        deadline_at=row[9],
        finished_at=row[10],
        cancel_requested_at=row[11],
        worker_id=row[12],
        retry=read_retry(row[13]),
        watched=bool(row[14]),
        has_children=bool(row[15]),
        cascade_due=bool(row[16]),
        pause_requested=bool(row[17]),
        cancel_reason=row[18] or "",
        cancel_unseen=row[11] is not None and row[19] == row[2],
        continued_as=row[20],
    )


def _step_state(row: Row) -> StepState:
    """From the columns of `part_step_state`, and what it holds if that is there."""
    output, output_meta, error, details, details_meta = row[21:] or _NO_PAYLOADS
    return StepState(
        step_id=row[0],
        name=row[1],
        kind=row[2],
        status=row[3],
        begun_seq=row[4],
        lease=Lease(row[5], row[6]),
        created_at=row[7],
        attempt=row[8],
        seq=row[9],
        started_at=row[10],
        finished_at=row[11],
        retry_at=row[12],
        wake_at=row[13],
        retry=read_retry(row[14]),
        timeout_ms=row[15],
        once=bool(row[16]),
        worker_id=row[17],
        parent_step_id=row[18],
        parallel_group_id=row[19],
        child_run_id=row[20],
        output=read_payload(output, output_meta),
        error=read_error(error),
        details=read_payload(details, details_meta),
    )


def _load_attempt(wave: Wave, run: RunState, step: StepState, command: BeginStep | FailStep) -> None:
    """The earlier attempt that a repeat may be about, if it was recorded under this very lease."""
    current = command.attempt in (0, step.attempt)
    if isinstance(command, FailStep):
        repeated = not current or step.status != StepCode.RUNNING
    else:
        repeated = command.attempt > 0 and (not current or step.lease != command.lease)
    if not repeated:
        return
    attempt, lease = command.attempt or step.attempt - 1, command.lease
    given = (run.run.run_id, step.step_id, attempt, lease.counter, lease.nonce)
    if (row := wave.database.row("failed_attempt", given)) is not None:
        run.attempts[step.step_id, attempt] = AttemptState(
            step_id=step.step_id,
            attempt=attempt,
            begun_seq=row[0],
            seq=row[1],
            lease=lease,
            started_at=row[2],
            finished_at=row[3],
            retry_at=row[4],
        )


def _load_waits(wave: Wave, run: RunState, command: Park) -> None:
    """What the run waits for, as far as it decides when it wakes; and results that its worker does not know, a page of them."""
    names = write_json(command.waits) if command.waits else None
    given = {"run_id": run.run.run_id, "names": names}
    rows = wave.database.rows("next_waits", given)
    if any(row[13] is not None and row[13] <= wave.now for row in rows):
        rows += wave.database.rows("due_waits", given | {"now": wave.now})
    for row in rows:
        run.steps[row[0]] = _step_state(row)
    if _last_result(wave, run.run.run_id) > command.known_seq:
        size = 0
        for number, step in enumerate(_results_after(wave, run.run.run_id, command.known_seq)):
            run.steps[step.step_id] = step
            size += STEP_BYTES + payload_bytes(step.output) + error_bytes(step.error) + payload_bytes(step.details)
            if number and size > MESSAGE_SOFT_BYTES:
                return  # this one is too many: it tells that there are more


def _last_result(wave: Wave, run_id: str) -> int:
    """Remembered: looking costs as much as the history is long."""
    fence = _fence_of(wave, run_id)
    if fence.last_result is None:
        row = wave.database.row("last_result", (run_id,))
        fence.last_result = row[0] if row else 0
    return fence.last_result or 0


def _results_after(wave: Wave, run_id: str, known_seq: int) -> Iterator[StepState]:
    """Each is read when it is asked for: the order is found without the payloads."""
    for (step_id,) in wave.database.rows("results_after", (run_id, known_seq, _PAGE_STEPS)):
        row = wave.database.row("step_with_payloads", (run_id, step_id))
        assert row is not None  # it was just found
        yield _step_state(row)


def _load_losers(wave: Wave, run: RunState, command: DecideRace) -> None:
    for step_id in command.losers:
        if step_id not in run.steps:
            row = wave.database.row("step_state", (run.run.run_id, step_id))
            if row is not None:
                run.steps[step_id] = _step_state(row)


def _load_signal(wave: Wave, run: RunState, command: WaitSignal) -> None:
    row = wave.database.row("next_signal", (run.run.run_id, command.signal_name))
    if row is not None:
        payload = Payload(row[1], read_mapping(row[2]) if row[2] else None)
        run.signals.append(SignalState(number=row[0], name=command.signal_name, payload=payload))


def _count_steps(wave: Wave, run: RunState) -> int:
    """Of a run whose seq says that the limit may be near. Remembered, like the last result."""
    if run.status != _RUNNING:
        return 0  # nothing begins
    fence = _fence_of(wave, run.run.run_id)
    if fence.steps_met is None:
        row = wave.database.row("count_steps", (run.run.run_id,))
        fence.steps_met = row[0] if row else 0
    return fence.steps_met or 0


def _fence_of(wave: Wave, run_id: str) -> Fence:
    """Of a run that is RUNNING."""
    if (fence := wave.fences.get(run_id)) is None:
        wave.fences.load(wave.database, (run_id,))
        fence = wave.fences.get(run_id)
    assert fence is not None  # the run was just read
    return fence


# --- save -------------------------------------------------------------------------------------------------------------


def save(wave: Wave, run: RunState, command: StepCommand | ClosingCommand, outcome: Outcome) -> Outcome:
    """Write what the command changed. Returns the outcome, with what became of other runs by it."""
    database, run_id = wave.database, run.run.run_id
    if run.status != _RUNNING and run.watched:
        wave.flush()  # its parents may be among those gathered
    for step in run.steps.values():
        if step.changed:
            _save_step(wave, run_id, step, command)
    for attempt in run.new_attempts:
        database.run("save_attempt", _attempt_row(run_id, attempt))
    for signal in run.signals:
        if signal.step_id:
            database.run("bind_signal", (signal.step_id, run_id, signal.number))
    if isinstance(command, SetStatus):
        database.run("set_status", (run.status_text, run.progress, run_id))
    if run.status != _RUNNING:
        return _save_left(wave, run, command, outcome)
    if isinstance(command, DecideRace) and run.cascade_due:
        database.run("cascade_due", (run_id,))
    _advance(wave, run)
    return create_children(wave, run, outcome) if isinstance(command, StartChild) else outcome


def _advance(wave: Wave, run: RunState) -> None:
    """The run goes on: its row is written with the others of the batch."""
    fence = _fence_of(wave, run.run.run_id)
    fence.seq = run.seq
    if run.progressed and fence.lost_leases:
        fence.lost_leases = -1
    if run.result_seq and fence.last_result is not None:
        fence.last_result = run.result_seq
    fence.related = fence.related or run.has_children
    fence.steps_met = run.step_count if fence.steps_met is not None else None
    wave.touched[run.run.run_id] = fence


def _save_left(wave: Wave, run: RunState, command: StepCommand | ClosingCommand, outcome: Outcome) -> Outcome:
    run_id = run.run.run_id
    wave.let_go(run_id)
    if isinstance(command, Park) and run.status == RunCode.SLEEPING:  # the one left that may not have been read
        wave.database.run("park_run", (run.wait_reason, run.due_at, run_id))
        return outcome
    wave.database.run("leave_run", _left_row(run))
    if run.tried_build is not None and run.problem is not None:
        given = {"problem": write_error(run.problem), "build_id": run.tried_build, "others": limits.TRIED_BUILDS - 1}
        wave.database.run("note_divergence", given | {"run_id": run_id})
    if run.successor is not None:
        create_successor(wave, run, run.successor)
    elif run.ended and run.watched and isinstance(outcome, RunClosed):
        return msgspec.structs.replace(outcome, stirred=tell_end(wave.writer, run_id, wave.now).stirred)
    return outcome


def _left_row(run: RunState) -> dict[str, Any]:
    return {
        "run_id": run.run.run_id,
        "lease": run.lease.counter,
        "nonce": run.lease.nonce,
        "status": int(run.status),
        "seq": run.seq,
        "attempt": run.attempt,
        "wait_reason": run.wait_reason,
        "due_at": run.due_at,
        "ready_at": run.ready_at,
        "finished_at": run.finished_at,
        "error": None if run.error is None else write_error(run.error),
        "cascade_due": run.cascade_due,
        "continued_as": run.continued_as,
    }


def _save_step(wave: Wave, run_id: str, step: StepState, command: StepCommand | ClosingCommand) -> None:
    if step.new:
        wave.database.run("insert_step", (*_constant_columns(run_id, step), *_changing_columns(step)))
    elif isinstance(command, BeatStep):
        wave.database.run("set_details", (*_payload_columns(step.details), run_id, step.step_id))
    else:
        wave.database.run("update_step", (*_changing_columns(step), run_id, step.step_id))


def _constant_columns(run_id: str, step: StepState) -> tuple[Any, ...]:
    return (
        run_id,
        step.step_id,
        step.name,
        step.kind,
        write_retry(step.retry),
        step.timeout_ms,
        *_payload_columns(step.input),
        step.wake_at,
        step.parent_step_id,
        step.parallel_group_id,
        step.once,
        step.created_at,
    )


def _changing_columns(step: StepState) -> tuple[Any, ...]:
    return (
        step.status,
        step.attempt,
        step.begun_seq,
        step.seq,
        step.lease.counter,
        step.lease.nonce,
        *_payload_columns(step.output),
        None if step.error is None else write_error(step.error),
        step.retry_at,
        step.child_run_id,
        step.started_at,
        step.finished_at,
        step.worker_id,
    )


def _payload_columns(payload: Payload | None) -> tuple[bytes | None, str | None]:
    return (None, None) if payload is None else (payload.data, write_mapping(payload.metadata))


def _attempt_row(run_id: str, attempt: AttemptState) -> tuple[Any, ...]:
    assert attempt.error is not None  # it is new
    return (
        run_id,
        attempt.step_id,
        attempt.attempt,
        attempt.begun_seq,
        attempt.seq,
        attempt.lease.counter,
        attempt.lease.nonce,
        attempt.started_at,
        attempt.finished_at,
        write_error(attempt.error),
        attempt.retry_at,
        attempt.worker_id,
    )

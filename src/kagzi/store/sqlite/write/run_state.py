"""Loads the run state on which a command is decided (core/run). `run_changes.py` saves the changes."""

from collections.abc import Iterator, Sequence
from typing import get_args

from ....core.limits import MESSAGE_SOFT_BYTES, STEPS_PER_RUN
from ....core.pages.sizes import STEP_BYTES, error_bytes, payload_bytes
from ....core.records import Lease, Payload
from ....core.run.commands import (
    ClosingCommand,
    CompleteRun,
    DecideRace,
    FailRun,
    FailStep,
    OpenAttempt,
    Park,
    ResultsCommand,
    StartChild,
    StepCommand,
    WaitSignal,
)
from ....core.run.misfits import DROPPED
from ....core.run.signals import abandoned_by, has_value
from ....core.run.state import RETURNS_STEP, AttemptState, RunState, SignalState, StepState
from ....core.run.steps import Beginning
from ....core.states import RunCode, StepCode
from ...rows import (
    read_error,
    read_labels,
    read_payload,
    read_policy,
    write_json,
)
from ..connection.connection import Row
from .children import find_relatives
from .fast_path import WritePlan
from .fences import NEVER

_PAGE_STEPS = MESSAGE_SOFT_BYTES // STEP_BYTES + 2  # more than fit into a page, even if all are small
_NO_PAYLOADS = (None,) * 5
_NEED_FENCE_ONLY = frozenset((*get_args(StepCommand), Park))
_RUNNING = int(RunCode.RUNNING)


def load(plan: WritePlan, command: StepCommand | ClosingCommand) -> RunState | None:
    """The run, and those of its steps, attempts, signals and relatives that concern this command. None: no such run."""
    run = _leased(plan, command) or _read(plan, command)
    if run is None:
        return None
    step = None
    if (step_id := _named_step(run, command)) is not None:
        statement = "step_with_payloads" if isinstance(command, RETURNS_STEP) else "step_state"
        if (row := plan.database.row(statement, (run.run.run_id, step_id))) is not None:
            step = run.steps[step_id] = _step_state(row)
    if isinstance(command, (OpenAttempt, FailStep)):
        if step is not None:
            _load_attempt(plan, run, step, command)
    elif run.status == _RUNNING and run.lease == command.lease:  # otherwise at best a repeat, which its step decides
        _load_more(plan, run, command)
    if isinstance(command, StartChild):
        run.relatives = find_relatives(plan, command, step)
    if run.seq >= STEPS_PER_RUN and isinstance(command, Beginning):
        run.step_count = _count_steps(plan, run)
    return run


def _leased(plan: WritePlan, command: StepCommand | ClosingCommand) -> RunState | None:
    """The run from its fence, which is enough for steps and waits. None: the run must be read."""
    fence = plan.fences.get(command.run.run_id)
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


def _read(plan: WritePlan, command: StepCommand | ClosingCommand) -> RunState | None:
    row = plan.database.row("run_state", (command.run.run_id,))
    return None if row is None or row[0] != command.run.namespace else _run_state(command, row)


def _load_more(plan: WritePlan, run: RunState, command: StepCommand | ClosingCommand) -> None:
    if isinstance(command, ResultsCommand):
        _load_waits(plan, run, command)
    elif waits := abandoned_by(command):
        _load_abandoned(plan, run, waits, are_closed=isinstance(command, DecideRace))
    elif isinstance(command, WaitSignal) and not run.steps:
        _load_signal(plan, run, command)


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
        retry=read_policy(row[13]),
        watched=bool(row[14]),
        has_children=bool(row[15]),
        cascade_due=bool(row[16]),
        pause_requested=bool(row[17]),
        cancel_reason=row[18] or "",
        cancel_unseen=row[11] is not None and row[19] == row[2],
        continued_as=row[20],
        unread_signals=row[21],
    )


def _step_state(row: Row) -> StepState:
    """From the columns of `part_step_state`, with payloads if they were read."""
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
        retry=read_policy(row[14]),
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


def _load_attempt(plan: WritePlan, run: RunState, step: StepState, command: OpenAttempt | FailStep) -> None:
    """The earlier attempt that the command may repeat, if it was recorded under the same lease."""
    current = command.attempt in (0, step.attempt)
    if isinstance(command, FailStep):
        repeated = not current or step.status != StepCode.RUNNING
    else:
        repeated = command.attempt > 0 and (not current or step.lease != command.lease)
    if not repeated:
        return
    attempt, lease = command.attempt or step.attempt - 1, command.lease
    parameters = (run.run.run_id, step.step_id, attempt, lease.counter, lease.nonce)
    if (row := plan.database.row("failed_attempt", parameters)) is not None:
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


def _load_waits(plan: WritePlan, run: RunState, command: ResultsCommand) -> None:
    """The waits that determine the run's wake-up, and a page of results that its worker does not have."""
    names = write_json(command.waits) if command.waits else None
    parameters = {"run_id": run.run.run_id, "names": names}
    rows = plan.database.rows("next_waits", parameters)
    if any(row[13] is not None and row[13] <= plan.now for row in rows):
        rows += plan.database.rows("due_waits", parameters | {"now": plan.now})
    if any(row[12] is not None and row[12] <= plan.now for row in rows):
        rows += plan.database.rows("due_retries", parameters | {"now": plan.now})
    for row in rows:
        run.steps[row[0]] = _step_state(row)
    if _last_result(plan, run.run.run_id) > command.known_seq:
        size = 0
        for number, step in enumerate(_results_after(plan, run.run.run_id, command.known_seq)):
            run.steps[step.step_id] = step
            size += STEP_BYTES + payload_bytes(step.output) + error_bytes(step.error) + payload_bytes(step.details)
            if number and size > MESSAGE_SOFT_BYTES:
                return  # one more than fits, which shows that there are more


def _last_result(plan: WritePlan, run_id: str) -> int:
    """Cached: reading it costs as much as the history is long."""
    fence = plan.fence_of(run_id)
    if fence.last_result is None:
        row = plan.database.row("last_result", (run_id,))
        fence.last_result = row[0] if row else 0
    return fence.last_result or 0


def _results_after(plan: WritePlan, run_id: str, known_seq: int) -> Iterator[StepState]:
    """Reads each result only when needed; their order is read without the payloads."""
    for (step_id,) in plan.database.rows("results_after", (run_id, known_seq, _PAGE_STEPS)):
        row = plan.database.row("step_with_payloads", (run_id, step_id))
        assert row is not None  # its id was just read
        yield _step_state(row)


def _load_abandoned(plan: WritePlan, run: RunState, step_ids: Sequence[str], *, are_closed: bool) -> None:
    """The steps; and if signals are taken back from some, all that other waits may get instead, and those waits unless
    the run ends."""
    for step_id in step_ids:
        if step_id not in run.steps:
            row = plan.database.row("step_state", (run.run.run_id, step_id))
            if row is not None:
                run.steps[step_id] = _step_state(row)
    emptied = [run.steps[step_id] for step_id in step_ids if has_value(run.steps.get(step_id))]
    if not emptied:
        return
    parameters = {"run_id": run.run.run_id, "step_ids": write_json([step.step_id for step in emptied])}
    for name in sorted({step.name for step in emptied}):
        names = {"name": name, "dropped": DROPPED}
        for number, bound in plan.database.rows("signals_to_take_back", parameters | names):
            run.signals.append(SignalState(number=number, name=name, payload=None, step_id=bound))
        others = {"run_id": run.run.run_id, "name": name, "abandoned": write_json(step_ids), "count": len(emptied)}
        for row in plan.database.rows("waiting_steps", others) if are_closed else ():
            run.steps[row[0]] = _step_state(row)


def _load_signal(plan: WritePlan, run: RunState, command: WaitSignal) -> None:
    row = plan.database.row("next_signal", (run.run.run_id, command.signal_name))
    if row is not None:
        payload = Payload(row[1], read_labels(row[2]) if row[2] else None)
        run.signals.append(SignalState(number=row[0], name=command.signal_name, payload=payload))


def _count_steps(plan: WritePlan, run: RunState) -> int:
    """Counts only if the run's seq shows that the limit may be near. Cached, like the last result."""
    if run.status != _RUNNING:
        return 0  # nothing can begin
    fence = plan.fence_of(run.run.run_id)
    if fence.steps_met is None:
        row = plan.database.row("count_steps", (run.run.run_id,))
        fence.steps_met = row[0] if row else 0
    return fence.steps_met or 0

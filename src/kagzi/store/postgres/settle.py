"""The careful path: read the runs and the steps that matter, decide command by command, write what came of it.

The writing demands that no number was given out since the reading (`seq` is a run's version); otherwise it is done again.
So a decision is as good as one made under a lock, and costs two round trips for any number of commands.
"""

from collections.abc import Sequence

from ...core.commands import BeginSleep, BeginStep, Command, CompleteStep, FailStep, FinishSleep, Park
from ...core.limits import STEPS_PER_RUN
from ...core.outcomes import Busy, Outcome, RunNotFound
from ...core.records import Lease, Payload, RunKey
from . import transitions
from .batch import WorkerGroup, Writing
from .connections import Row, Rows, Session, columns
from .rows import read_error, read_payload, read_policy, write_error, write_policy, write_strings
from .state import AttemptState, RunState, StepState

_ROUNDS = 5
_STEP_COLUMNS = 27
_ATTEMPT_COLUMNS = 12


async def settle(writing: Writing, groups: Sequence[WorkerGroup]) -> None:
    """Fill in the outcome of every command of these groups, which come in the order of their run ids."""
    for _ in range(_ROUNDS):
        states = await _read(writing.session, groups)
        decided: list[tuple[int, Outcome]] = []
        changed: list[tuple[WorkerGroup, RunState]] = []
        for number, group in enumerate(groups, start=1):
            state = states.get(number)
            for index, command in group[1]:
                decided.append((index, _decide(state, command, writing)))
            if state is not None and state.changed:
                changed.append((group, state))
        taken = await _write(writing, [state for _, state in changed]) if changed else ()
        groups = [group for number, (group, _) in enumerate(changed, start=1) if number not in taken]
        again = {index for _, commands in groups for index, _ in commands}
        for index, outcome in decided:
            if index not in again:
                writing.outcomes[index] = outcome
        if not groups:
            return
    for _, commands in groups:
        for index, _ in commands:
            writing.outcomes[index] = Busy()


def _decide(state: RunState | None, command: Command, writing: Writing) -> Outcome:
    return RunNotFound() if state is None else transitions.apply(state, command, writing.now, writing.dice)


async def _read(session: Session, groups: Sequence[WorkerGroup]) -> dict[int, RunState]:
    heads: list[tuple[str, str, int | None, int]] = []
    named: list[tuple[int, str, int]] = []
    for number, (run, commands) in enumerate(groups, start=1):
        known_seq: int | None = None
        begins = 0
        for _, command in commands:
            if isinstance(command, Park):
                known_seq = command.known_seq if known_seq is None else min(known_seq, command.known_seq)
            elif isinstance(command, (BeginStep, CompleteStep, FailStep)):
                named.append((number, command.step_id, command.attempt))
                begins += isinstance(command, BeginStep)
            elif isinstance(command, (BeginSleep, FinishSleep)):
                named.append((number, command.step_id, 0))
                begins += isinstance(command, BeginSleep)
        heads.append((run.run_id, run.namespace, known_seq, begins))
    rows = await session.read("read_for_write", *zip(*heads, strict=True), *columns(named, 3), STEPS_PER_RUN)
    return _states(rows)


def _states(rows: Rows) -> dict[int, RunState]:
    states: dict[int, RunState] = {}
    for row in rows:
        state = states.get(row["n"])
        if state is None:
            state = states[row["n"]] = _run_state(row)
        if row["step_id"] is not None and row["step_id"] not in state.steps:
            state.steps[row["step_id"]] = _step_state(row)
        if row["a_attempt"] is not None:
            attempt = _attempt_state(row)
            state.attempts[attempt.step_id, attempt.attempt] = attempt
    return states


async def _write(writing: Writing, states: Sequence[RunState]) -> set[int]:
    """The numbers (1, 2, ...) of the runs that were as they had been read, and are written."""
    steps = [
        _step_row(number, step)
        for number, state in enumerate(states, start=1)
        for step in state.steps.values()
        if step.changed
    ]
    attempts = [
        _attempt_row(number, attempt) for number, state in enumerate(states, start=1) for attempt in state.new_attempts
    ]
    [row] = await writing.session.write(
        "settle",
        writing.now,
        writing.terms.until,
        writing.terms.renew_before,
        *zip(*[_run_row(state) for state in states], strict=True),
        *columns(steps, _STEP_COLUMNS),
        *columns(attempts, _ATTEMPT_COLUMNS),
    )
    taken: list[int] = row["groups"] or []
    return set(taken)


def _run_state(row: Row) -> RunState:
    return RunState(
        run=RunKey(row["namespace"], row["run_id"]),
        status=row["run_status"],
        lease=Lease(row["run_lease"], row["run_nonce"]),
        read_seq=row["run_seq"],
        seq=row["run_seq"],
        result_seq=row["result_seq"],
        step_count=row["step_count"],
        attempt=row["run_attempt"],
        lease_until=row["lease_until"],
        claimed_at=row["claimed_at"],
        ready_at=row["ready_at"],
        due_at=row["run_due_at"],
        wait_reason=row["wait_reason"],
        deadline_at=row["deadline_at"],
        finished_at=row["run_finished_at"],
        cancel_requested_at=row["cancel_requested_at"],
        worker_id=row["run_worker_id"],
        retry=read_policy(row["run_retry"]),
    )


def _step_state(row: Row) -> StepState:
    return StepState(
        step_id=row["step_id"],
        name=row["name"],
        kind=row["kind"],
        status=row["status"],
        begun_seq=row["begun_seq"],
        lease=Lease(row["lease"], row["nonce"]),
        created_at=row["created_at"],
        attempt=row["attempt"],
        seq=row["seq"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        retry_at=row["retry_at"],
        wake_at=row["wake_at"],
        retry=read_policy(row["retry"]),
        timeout_ms=row["timeout_ms"],
        once=row["once"],
        worker_id=row["worker_id"],
        parent_step_id=row["parent_step_id"] or "",
        parallel_group_id=row["parallel_group_id"] or "",
        output=read_payload(row["output"], row["output_meta"]),
        error=read_error(row["error"]),
        child_run_id=row["child_run_id"],
        details=read_payload(row["details"], row["details_meta"]),
    )


def _attempt_state(row: Row) -> AttemptState:
    return AttemptState(
        step_id=row["step_id"],
        attempt=row["a_attempt"],
        begun_seq=row["a_begun_seq"],
        seq=row["a_seq"],
        lease=Lease(row["a_lease"], row["a_nonce"]),
        started_at=row["a_started_at"],
        finished_at=row["a_finished_at"],
        retry_at=row["a_retry_at"],
    )


def _run_row(state: RunState) -> tuple[object, ...]:
    return (
        state.run.run_id,
        state.run.namespace,
        state.lease.counter,
        state.lease.nonce,
        state.read_seq,
        state.seq,
        state.result_seq,
        state.step_count,
        state.attempt,
        state.status,
        state.wait_reason,
        state.due_at,
        state.ready_at,
        state.finished_at,
        write_error(state.error),
    )


def _step_row(number: int, step: StepState) -> tuple[object, ...]:
    return (
        number,
        step.step_id,
        step.name,
        step.kind,
        step.status,
        step.attempt,
        step.begun_seq,
        step.seq,
        step.lease.counter,
        step.lease.nonce,
        step.created_at,
        step.started_at,
        step.finished_at,
        step.due_at,
        step.retry_at,
        step.wake_at,
        step.timeout_ms,
        step.once,
        step.worker_id,
        step.parent_step_id or None,
        step.parallel_group_id or None,
        write_policy(step.retry),
        write_error(step.error),
        *_payloadcolumns(step.input),
        *_payloadcolumns(step.output),
    )


def _attempt_row(number: int, attempt: AttemptState) -> tuple[object, ...]:
    return (
        number,
        attempt.step_id,
        attempt.attempt,
        attempt.begun_seq,
        attempt.seq,
        attempt.lease.counter,
        attempt.lease.nonce,
        attempt.started_at,
        attempt.finished_at,
        attempt.retry_at,
        attempt.worker_id,
        write_error(attempt.error),
    )


def _payloadcolumns(payload: Payload | None) -> tuple[bytes | None, str | None]:
    return (None, None) if payload is None else (payload.data, write_strings(payload.metadata))

"""Loads the run states on which commands are decided (core/run), and saves the changes."""

from collections import Counter
from collections.abc import Sequence

from ....core.limits import BATCH_ANSWER_BYTES, MESSAGE_SOFT_BYTES, STEPS_PER_RUN
from ....core.pages.sizes import STEP_BYTES
from ....core.records import Lease, Payload, RunKey
from ....core.run.commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CompleteRun,
    CompleteStep,
    DecideRace,
    FailRun,
    FailStep,
    FinishSleep,
    RecordPatch,
    RecordStep,
    ResultsCommand,
    StartChild,
    WaitSignal,
)
from ....core.run.misfits import DROPPED
from ....core.run.signals import abandoned_by, has_value
from ....core.run.state import RETURNS_STEP, AttemptState, RunState, SignalState, StepState
from ...rows import read_error, read_payload, read_policy, require_payload, write_error, write_policy, write_strings
from ..connection.connection import Row, Rows, Session
from .batch import WorkerGroup, Writing

_PAGE_STEPS = MESSAGE_SOFT_BYTES // STEP_BYTES + 2  # more than fit into a page, even if all are small

_WITH_ATTEMPT = (BeginStep, RecordStep, CompleteStep, FailStep, BeatStep)
_WITHOUT_ATTEMPT = (BeginSleep, FinishSleep, WaitSignal, StartChild, DecideRace, RecordPatch)
_BEGINNING = (BeginStep, RecordStep, BeginSleep, WaitSignal, StartChild, DecideRace, RecordPatch)


async def read_states(
    session: Session, groups: Sequence[WorkerGroup], also: Sequence[tuple[int, str]] = ()
) -> dict[int, RunState]:
    """By group number (1, 2, ...): the run and the steps that its commands concern. `also`: other steps, with the
    number of their group."""
    heads: list[dict[str, object]] = []
    named = [_named(number, step_id) for number, step_id in also]
    for number, (run, commands) in enumerate(groups, start=1):
        known_seq: int | None = None
        begins = 0
        for _, command in commands:
            if isinstance(command, ResultsCommand):
                known_seq = command.known_seq if known_seq is None else min(known_seq, command.known_seq)
            elif isinstance(command, _WITH_ATTEMPT):
                named.append(
                    _named(number, command.step_id, command.attempt, shown_to_worker=isinstance(command, RETURNS_STEP))
                )
            elif isinstance(command, _WITHOUT_ATTEMPT):
                named.append(_named(number, command.step_id, shown_to_worker=isinstance(command, RETURNS_STEP)))
            elif isinstance(command, (CompleteRun, FailRun)) and command.after_step:
                named.append(_named(number, command.after_step))
            named += [_named(number, wait) for wait in abandoned_by(command)]
            begins += isinstance(command, _BEGINNING)
        heads.append(
            {
                "run_id": run.run_id,
                "namespace": run.namespace,
                "known_seq": known_seq,
                "begins": begins,
                "place": commands[0][0],
            }
        )
    rows = await session.read(
        "read_for_write",
        groups=heads,
        named=named,
        most_steps=STEPS_PER_RUN,
        page_bytes=MESSAGE_SOFT_BYTES,
        answer_bytes=BATCH_ANSWER_BYTES,
        page_steps=_PAGE_STEPS,
    )
    states = _states(rows)
    await _read_signals(session, groups, states)
    return states


def _named(number: int, step_id: str, attempt: int = 0, *, shown_to_worker: bool = False) -> dict[str, object]:
    return {"n": number, "step_id": step_id, "attempt": attempt, "shown_to_worker": shown_to_worker}


async def _read_signals(session: Session, groups: Sequence[WorkerGroup], states: dict[int, RunState]) -> None:
    """Buffered signals. A signal that arrives later increments the run's seq."""
    wanted = Counter(
        (number, run.run_id, command.signal_name, commands[0][0])
        for number, (run, commands) in enumerate(groups, start=1)
        for _, command in commands
        if isinstance(command, WaitSignal)
    )
    if not wanted:
        return
    waits = [
        {"n": number, "run_id": run_id, "name": name, "wanted": count, "place": place}
        for (number, run_id, name, place), count in wanted.items()
    ]
    for row in await session.read("unbound_signals", waits=waits, answer_bytes=BATCH_ANSWER_BYTES):
        payload = None if row["withheld"] else require_payload(row["payload"], row["payload_meta"])
        if (state := states.get(row["n"])) is not None:
            state.signals.append(SignalState(number=row["number"], name=row["name"], payload=payload))


def _states(rows: Rows) -> dict[int, RunState]:
    states: dict[int, RunState] = {}
    for row in rows:
        state = states.get(row["n"])
        if state is None:
            state = states[row["n"]] = _run_state(row)
        if row["step_id"] is not None and (row["shown"] or row["step_id"] not in state.steps):
            state.steps[row["step_id"]] = _step_state(row)
        if row["a_attempt"] is not None:
            attempt = _attempt_state(row)
            state.attempts[attempt.step_id, attempt.attempt] = attempt
    return states


def waits_with_values(groups: Sequence[WorkerGroup], states: dict[int, RunState]) -> list[tuple[int, str]]:
    """The waits for signals, with the numbers of their groups, that these commands give up although their signals have
    come: other waits may get those."""
    return [
        (number, wait)
        for number, (_, commands) in enumerate(groups, start=1)
        if (state := states.get(number)) is not None
        for _, command in commands
        for wait in abandoned_by(command)
        if has_value(state.steps.get(wait))
    ]


async def read_signals_to_take_back(
    session: Session, groups: Sequence[WorkerGroup], states: dict[int, RunState]
) -> dict[int, RunState]:
    """The same states with those signals, all later ones of their names, and the steps that wait for these names. Under
    the runs' locks."""
    abandoned = [
        {"n": number, "run_id": run.run_id, "step_id": wait}
        for number, (run, commands) in enumerate(groups, start=1)
        for _, command in commands
        for wait in abandoned_by(command)
    ]
    rows = await session.read("signals_to_take_back", waits=abandoned, dropped=DROPPED)
    waiting = [(row["n"], row["step_id"]) for row in rows if row["number"] is None]
    if waiting:
        states = await read_states(session, groups, waiting)
    for row in rows:
        if row["number"] is not None:
            signal = SignalState(number=row["number"], name=row["name"], payload=None, step_id=row["step_id"])
            states[row["n"]].signals.append(signal)
    return states


async def write_states(writing: Writing, states: Sequence[RunState]) -> set[int]:
    """The numbers (1, 2, ...) of the runs that had not changed since they were read, and were written."""
    numbered = list(enumerate(states, start=1))
    steps = [_step_row(number, step) for number, state in numbered for step in state.steps.values() if step.changed]
    attempts = [_attempt_row(number, attempt) for number, state in numbered for attempt in state.new_attempts]
    signals = [
        {"n": number, "number": signal.number, "step_id": signal.step_id}
        for number, state in numbered
        for signal in state.signals
        if signal.step_id != signal.read_step_id
    ]
    [row] = await writing.session.write(
        "settle",
        now=writing.now,
        until=writing.terms.until,
        renew_before=writing.terms.renew_before,
        runs=[_run_row(state) for state in states],
        steps=steps,
        attempts=attempts,
        signals=signals,
    )
    taken: list[int] = row["groups"] or []
    if taken:
        writing.session.committed()
    return set(taken)


async def refill_waits(session: Session, states: Sequence[RunState]) -> None:
    """After `write_states`, in its transaction: copy the values of signals to the waits that they are bound to now."""
    waits = [{"run_id": state.run.run_id, "step_id": wait} for state in states for wait in sorted(state.refilled)]
    if waits:
        await session.read("refill_waits", waits=waits)


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
        ready_at=row["ready_at"],
        due_at=row["run_due_at"],
        wait_reason=row["wait_reason"],
        deadline_at=row["deadline_at"],
        finished_at=row["run_finished_at"],
        cancel_requested_at=row["cancel_requested_at"],
        worker_id=row["run_worker_id"],
        retry=read_policy(row["run_retry"]),
        read_result_seq=row["result_seq"],
        watched=row["watched"],
        has_children=row["has_children"],
        cascade_due=row["cascade_due"],
        unread_signals=row["unread_signals"],
        pause_requested=row["pause_requested"],
        cancel_reason=row["cancel_reason"] or "",
        cancel_unseen=row["cancel_unseen"],
        continued_as=row["continued_as"],
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
        withheld=row["withheld"],
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


def _run_row(state: RunState) -> dict[str, object]:
    waits, retries, unread = state.count_changes()
    return {
        "run_id": state.run.run_id,
        "namespace": state.run.namespace,
        "lease": state.lease.counter,
        "nonce": state.lease.nonce,
        "read_seq": state.read_seq,
        "seq": state.seq,
        "result_seq": state.result_seq,
        "steps": state.step_count + state.begun_again,
        "attempt": state.attempt,
        "status": state.status,
        "wait_reason": state.wait_reason,
        "due_at": state.due_at,
        "ready_at": state.ready_at,
        "finished_at": state.finished_at,
        "error": write_error(state.error),
        "problem": write_error(state.problem),
        "progressed": state.progressed,
        "has_children": state.has_children,
        "cascade_due": state.cascade_due,
        "pause_requested": state.pause_requested,
        "diverged": state.diverged,
        "continued_as": state.continued_as,
        "status_text": state.status_text,
        "progress": state.progress,
        "tried_build": state.tried_build,
        "unpin_build": state.unpin_build,
        "waits": waits,
        "retries": retries,
        "unread": unread,
    }


def _step_row(number: int, step: StepState) -> dict[str, object]:
    return {
        "n": number,
        "step_id": step.step_id,
        "name": step.name,
        "kind": step.kind,
        "status": step.status,
        "attempt": step.attempt,
        "begun_seq": step.begun_seq,
        "seq": step.seq,
        "lease": step.lease.counter,
        "nonce": step.lease.nonce,
        "created_at": step.created_at,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "due_at": step.row_due_at,
        "retry_at": step.retry_at,
        "wake_at": step.wake_at,
        "timeout_ms": step.timeout_ms,
        "once": step.once,
        "worker_id": step.worker_id,
        "parent_step_id": step.parent_step_id or None,
        "parallel_group_id": step.parallel_group_id or None,
        "child_run_id": step.child_run_id,
        "retry": write_policy(step.retry),
        "error": write_error(step.error),
        **_payload_columns("input", step.input),
        **_payload_columns("output", step.output),
        **_payload_columns("details", step.details),
    }


def _attempt_row(number: int, attempt: AttemptState) -> dict[str, object]:
    return {
        "n": number,
        "step_id": attempt.step_id,
        "attempt": attempt.attempt,
        "begun_seq": attempt.begun_seq,
        "seq": attempt.seq,
        "lease": attempt.lease.counter,
        "nonce": attempt.lease.nonce,
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
        "retry_at": attempt.retry_at,
        "worker_id": attempt.worker_id,
        "error": write_error(attempt.error),
        **_payload_columns("input", attempt.input),
    }


def _payload_columns(name: str, payload: Payload | None) -> dict[str, object]:
    if payload is None:
        return {name: None, f"{name}_meta": None}
    return {name: payload.data, f"{name}_meta": write_strings(payload.metadata)}

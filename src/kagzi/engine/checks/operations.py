"""Checks the operations of workers. This is a hot path: a typical operation costs about a microsecond here."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument, KagziError
from ...core.providers import Clock, Ids
from ...core.records import Payload, RunKey
from ...core.run.commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    EndRun,
    FailRun,
    FailStep,
    FetchResults,
    FinishSleep,
    OpenAttempt,
    Park,
    PauseDiverged,
    RecordPatch,
    RecordStep,
    ReleaseRun,
    SetState,
    SetStatus,
    StartChild,
    StartRun,
    WaitSignal,
    child_request_id,
    refused_child_start,
)
from ...core.run.refusals import is_reserved, reserved_step
from . import requests as checks
from .bounds import bounded_error
from .refusals import refused

_STEP_IDS = 4_096  # valid ids that are cached: runs of a type share them

Failing = TypeVar("Failing", FailStep, FailRun, CancelRun, FailRun | CancelRun)


class Operations:
    """Checks the operations of workers and returns the commands to write. Errors are truncated to their limits, not
    refused: a failure must be recordable. Inputs that are only for people are left out if they are too large. Runs that
    a command creates (a child, a successor) get their ids here."""

    def __init__(self, payload_bytes: int, *, clock: Clock, ids: Ids) -> None:
        self._payload_bytes = payload_bytes
        self._clock = clock
        self._ids = ids
        self._step_ids: set[str] = set()
        self._checks: dict[type, Callable[[Any], Command]] = {
            BeginStep: self._begin_step,
            RecordStep: self._record_step,
            CompleteStep: self._complete_step,
            FailStep: self._fail_step,
            BeginSleep: self._begin_sleep,
            FinishSleep: self._finish_sleep,
            FetchResults: self._waits,
            Park: self._waits,
            CompleteRun: self._complete_run,
            FailRun: self._close_with_error,
            CancelRun: self._close_with_error,
            ReleaseRun: self._release,
            WaitSignal: self._wait_signal,
            StartChild: self._start_child,
            DecideRace: self._decide_race,
            RecordPatch: self._record_patch,
            SetStatus: self._set_status,
            SetState: self._set_state,
            BeatStep: self._beat_step,
            ContinueAsNew: self._continue_as_new,
            PauseDiverged: self._pause_diverged,
        }

    def check(self, command: Command) -> Command:
        """Raises InvalidArgument."""
        check = self._checks.get(command.__class__)
        if check is None or isinstance(command, StartRun):
            raise InvalidArgument("this is not an operation of a worker.", field="kind")
        lease = command.lease
        if not (0 <= lease.counter < checks.INT64_END and 0 <= lease.nonce < checks.INT64_END):
            raise InvalidArgument("lease was not issued by a claim.", field="lease")
        return check(command)

    def refusal_to_record(self, command: Command, error: KagziError) -> Command | None:
        """The command that records this refusal as the result of the call; None if the call has no place in the
        history that could be trusted, or is not one that other parties decide about."""
        if not isinstance(command, StartChild):
            return None
        try:
            _place(command)
            checks.name(command.name, "step_name")
        except InvalidArgument:
            return None
        start = refused_child_start(command.run, command.step_id)
        return msgspec.structs.replace(command, start=start, refusal=bounded_error(refused(error).error))

    def _payload(self, payload: Payload, field: str) -> None:
        if payload.metadata or len(payload.data) > self._payload_bytes:
            checks.payload(payload, field, self._payload_bytes)

    def _begin_step(self, command: BeginStep) -> BeginStep:
        if command.input is not None and len(command.input.data) > self._payload_bytes:
            command = msgspec.structs.replace(command, input=None)
        self._attempt_begins(command)
        return command

    def _record_step(self, command: RecordStep) -> RecordStep:
        if command.input is not None and len(command.input.data) > self._payload_bytes:
            command = msgspec.structs.replace(command, input=None)
        self._attempt_begins(command)
        output = command.output
        if output.metadata or len(output.data) > self._payload_bytes:  # inlines `_payload`, to save a call per step
            checks.payload(output, "output", self._payload_bytes)
        return command

    def _attempt_begins(self, command: OpenAttempt) -> None:
        step_id = command.step_id
        if step_id not in self._step_ids:
            self._check_step_id(step_id)
        if command.name is not step_id and command.name not in self._step_ids:
            checks.name(command.name, "step_name")
        if not 0 <= command.attempt < checks.INT32_END:
            _attempt(command.attempt)
        if command.retry is not None:
            checks.retry(command.retry, "retry_policy")
        if command.timeout_ms:
            checks.within(command.timeout_ms, 0, limits.DURATION_MAX_US // 1_000, "timeout_ms")
        if command.input is not None:
            self._payload(command.input, "input")
        if command.parent_step_id:
            checks.name(command.parent_step_id, "parent_step_id")
        if command.parallel_group_id:
            checks.name(command.parallel_group_id, "parallel_group_id")

    def _check_step_id(self, step_id: str) -> None:
        _new_step_id(step_id)
        if len(self._step_ids) >= _STEP_IDS:
            self._step_ids.clear()
        self._step_ids.add(step_id)

    def _complete_step(self, command: CompleteStep) -> CompleteStep:
        checks.name(command.step_id, "step_id")
        _attempt(command.attempt)
        self._payload(command.output, "output")
        return command

    def _fail_step(self, command: FailStep) -> FailStep:
        checks.name(command.step_id, "step_id")
        _attempt(command.attempt)
        # Twice the limit: a codec may have made it longer. If it is larger still, it is omitted, to record the failure.
        if command.input is not None and len(command.input.data) > 2 * limits.STEP_INPUT_BYTES:
            command = msgspec.structs.replace(command, input=None)
        if command.input is not None:
            self._payload(command.input, "input")
        return _with_bounded_error(command)

    def _begin_sleep(self, command: BeginSleep) -> BeginSleep:
        _new_step_id(command.step_id)
        checks.name(command.name, "step_name")
        if (command.duration_us is None) == (command.until is None):
            raise InvalidArgument("a sleep has a duration or an end: give exactly one.", field="duration")
        checks.duration(command.duration_us, "duration")
        checks.timestamp(command.until, "until")
        checks.optional_name(command.parent_step_id, "parent_step_id")
        checks.optional_name(command.parallel_group_id, "parallel_group_id")
        return command

    def _finish_sleep(self, command: FinishSleep) -> FinishSleep:
        checks.name(command.step_id, "step_id")
        return command

    def _waits(self, command: FetchResults | Park) -> FetchResults | Park:
        checks.batch_size(command.waits, limits.STEPS_PER_RUN, "waits")
        for step_id in command.waits:
            checks.name(step_id, "waits")
        checks.within(command.known_seq, 0, checks.INT64_END - 1, "known_seq")
        return command

    def _complete_run(self, command: CompleteRun) -> CompleteRun:
        self._payload(command.output, "output")
        checks.optional_name(command.after_step, "after_step_id")
        if command.open_waits:
            _open_waits(command)
        return command

    def _close_with_error(self, command: FailRun | CancelRun) -> FailRun | CancelRun:
        if isinstance(command, FailRun):
            checks.optional_name(command.after_step, "after_step_id")
        _open_waits(command)
        return _with_bounded_error(command)

    def _release(self, command: ReleaseRun) -> ReleaseRun:
        checks.reason(command.reason)
        return command

    def _wait_signal(self, command: WaitSignal) -> WaitSignal:
        if command.input is not None and len(command.input.data) > limits.SCHEMA_BYTES:
            command = msgspec.structs.replace(command, input=None)
        if command.input is not None:
            checks.payload(command.input, "input", limits.SCHEMA_BYTES)
        _place(command)
        checks.name(command.signal_name, "signal_name")
        checks.duration(command.timeout_us, "timeout")
        return command

    def _start_child(self, command: StartChild) -> StartChild:
        """Unique by run and step: a repeat of the command, on this or another server, finds the same child."""
        _place(command)
        checks.name(command.name, "step_name")
        if command.refusal is not None:  # found when the message was read
            start = refused_child_start(command.run, command.step_id)
            return msgspec.structs.replace(command, start=start, refusal=bounded_error(command.refusal))
        now = self._clock.now()
        start = command.start
        checks.child_start(start, now, self._payload_bytes)
        run_id = self._ids.run_id(now, command.run.namespace)
        start = msgspec.structs.replace(
            start,
            run=RunKey(command.run.namespace, run_id),
            workflow_id=start.workflow_id or run_id,
            request_id=child_request_id(command.run, command.step_id),
        )
        return msgspec.structs.replace(command, start=start)

    def _decide_race(self, command: DecideRace) -> DecideRace:
        _new_step_id(command.step_id)
        checks.name(command.name, "step_name")
        checks.optional_name(command.winner, "winner")
        checks.batch_size(command.losers, limits.STEPS_PER_RUN, "losers")
        for step_id in command.losers:
            checks.name(step_id, "losers")
        checks.optional_name(command.parent_step_id, "parent_step_id")
        return command

    def _record_patch(self, command: RecordPatch) -> RecordPatch:
        _new_step_id(command.step_id)
        checks.name(command.name, "step_name")
        return command

    def _set_status(self, command: SetStatus) -> SetStatus:
        checks.lines(command.text, "text", limits.STATUS_TEXT_BYTES)
        if command.progress is not None:
            checks.within(command.progress, 0, 1, "progress")
        return command

    def _set_state(self, command: SetState) -> SetState:
        self._payload(command.state, "state")  # its own size limit is checked with the run
        return command

    def _beat_step(self, command: BeatStep) -> BeatStep:
        checks.name(command.step_id, "step_id")
        _attempt(command.attempt)
        self._payload(command.details, "details")
        return command

    def _continue_as_new(self, command: ContinueAsNew) -> ContinueAsNew:
        self._payload(command.input, "input")
        checks.optional_name(command.version or "", "version")
        checks.context(command.context, self._payload_bytes)
        _open_waits(command)
        return msgspec.structs.replace(command, new_run_id=self._ids.run_id(self._clock.now(), command.run.namespace))

    def _pause_diverged(self, command: PauseDiverged) -> PauseDiverged:
        checks.text(command.build_id, "build_id", limits.NAME_BYTES)
        return msgspec.structs.replace(command, problem=bounded_error(command.problem))


def _new_step_id(step_id: str) -> None:
    """Checks the id in a command that may create a step."""
    checks.name(step_id, "step_id")
    if is_reserved(step_id):
        raise InvalidArgument(reserved_step(step_id).error.message, field="step_id")


def _open_waits(command: EndRun) -> None:
    if command.open_waits:
        checks.batch_size(command.open_waits, limits.STEPS_PER_RUN, "open_waits")
        for step_id in command.open_waits:
            checks.name(step_id, "open_waits")


def _place(command: WaitSignal | StartChild) -> None:
    _new_step_id(command.step_id)
    checks.optional_name(command.parent_step_id, "parent_step_id")
    checks.optional_name(command.parallel_group_id, "parallel_group_id")


def _attempt(attempt: int) -> None:
    if not 0 <= attempt < checks.INT32_END:
        checks.within(attempt, 0, checks.INT32_END - 1, "attempt")


def _with_bounded_error(command: Failing) -> Failing:
    bounded = bounded_error(command.error)
    return command if bounded is command.error else msgspec.structs.replace(command, error=bounded)

"""Validation of the lines of an import. Every refusal names the line and the field, and no part of the run becomes
visible."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import msgspec

from ...core import limits
from ...core.error_details import ErrorDetail
from ...core.errors import InvalidArgument
from ...core.ids import is_uuid
from ...core.records import DEFAULT_NAMESPACE, Payload
from ...core.run.handing_on import read_start_request
from ...core.states import RunStatus, StepKind, StepStatus, WaitReason
from ...core.times import LAST_TIME
from ...core.transfers.images import (
    AttemptImage,
    Data,
    End,
    ForgottenImage,
    LinkImage,
    Part,
    RunImage,
    SignalImage,
    StepImage,
    read_data,
    require_data,
)
from . import requests as checks

_ERROR_BYTES = limits.ERROR_CAUSES * (limits.ERROR_MESSAGE_BYTES + limits.ERROR_TRACEBACK_BYTES)
_TIMED = (WaitReason.TIME, WaitReason.RETRY)
_RESULTS = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.ABANDONED)
_RESERVED = "$"
_RUN_TIMES = [field for field in RunImage.__struct_fields__ if field.endswith("_at")]


@contextmanager
def on_line(number: int) -> Generator[None]:
    """Adds the line number to errors raised inside."""
    try:
        yield
    except InvalidArgument as error:
        if error.message.startswith("line "):
            raise
        raise InvalidArgument(f"line {number}: {error.message}", field=f"line {number}: {error.field}") from None


def _demand(holds: bool, field: str, message: str) -> None:
    if not holds:
        raise InvalidArgument(f"{field} {message}", field=field)


def _uuid(value: str | None, field: str) -> None:
    _demand(value is None or is_uuid(value), field, f"is not a run id: {value!r}.")


def _error(error: ErrorDetail | None, field: str) -> None:
    """Checks that the error is within its limits, and that its text can be stored."""
    depth, size = 0, 0
    while error is not None:
        depth += 1
        for text in (error.message, error.traceback):
            checks.lines(text, field, _ERROR_BYTES)
            size += len(text)
        for name in (error.type, error.subject, error.subject_id, *error.bases):
            checks.text(name, field, limits.ERROR_MESSAGE_BYTES)
        checks.entries(error.metadata, f"{field}.metadata", limits.METADATA_ENTRIES)
        error = error.cause
    _demand(
        depth <= limits.ERROR_CAUSES and size <= _ERROR_BYTES, field, f"has more than {limits.ERROR_CAUSES} causes."
    )


class Checker:
    """Checks the lines of one run as they arrive. `payload_bytes`: the largest payload that is accepted."""

    def __init__(self, payload_bytes: int) -> None:
        self._payload_bytes = payload_bytes
        self._last_seq = 0
        self._seqs: set[int] = set()
        self._counts = {StepImage: 0, AttemptImage: 0, SignalImage: 0, LinkImage: 0, ForgottenImage: 0}
        self._attempt_seqs: set[tuple[str, int]] = set()
        self._last_signal = 0
        self._forgotten_bytes = 0

    # --- the run -----------------------------------------------------------------------------------------------------

    def run(self, image: RunImage) -> None:
        """Raises InvalidArgument."""
        _demand(is_uuid(image.run_id), "run.run_id", f"is not a run id: {image.run_id!r}.")
        checks.attributes(image, "run.", retry_field="retry")
        for field in ("workflow_id", "request_id"):
            checks.name(getattr(image, field), f"run.{field}")
        for field in ("version", "pinned_build", "parent_step_id", "schedule_id", "retry_request_id"):
            checks.optional_name(getattr(image, field) or "", f"run.{field}")
        for field in ("parent_run_id", "blocked_by", "forked_from", "continued_as", "handed_on_to"):
            _uuid(getattr(image, field), f"run.{field}")
        for field in (*_RUN_TIMES, "cancel_by"):
            checks.timestamp(getattr(image, field), f"run.{field}")
        for field, least in (("last_seq", 0), ("lease", 0), ("attempt", 1), ("lost_leases", 0)):
            checks.within(getattr(image, field), least, checks.INT32_END - 1, f"run.{field}")
        checks.within(image.queued_us, 0, LAST_TIME, "run.queued_us")
        checks.reason(image.cancel_reason, "run.cancel_reason")
        checks.reason(image.pause_reason, "run.pause_reason")
        checks.lines(image.status_text, "run.status_text", limits.STATUS_TEXT_BYTES)
        checks.within(image.progress or 0.0, 0.0, 1.0, "run.progress")
        for build in image.tried_builds:
            checks.name(build, "run.tried_builds")
        _error(image.error, "run.error")
        _error(image.problem, "run.problem")
        for name, data in (("input", image.input), ("context", image.context), ("output", image.output)):
            self._data(data, f"run.{name}")
        checks.payload(read_data(image.state, "run.state"), "run.state", limits.STATE_STORED_BYTES)
        checks.timestamp(image.state_at, "run.state_at")
        _state(image)
        self._last_seq = image.last_seq

    # --- the rest ----------------------------------------------------------------------------------------------------

    def part(self, part: Part) -> None:
        """Raises InvalidArgument."""
        self._counts[type(part)] += 1
        match part:
            case StepImage():
                self._step(part)
            case AttemptImage():
                self._attempt(part)
            case SignalImage():
                self._signal(part)
            case LinkImage():
                checks.name(part.step_id, "link.step_id")
                _uuid(part.child_run_id, "link.child_run_id")
            case ForgottenImage():
                self._forgotten(part)

    def end(self, end: End) -> None:
        """Raises InvalidArgument if lines are missing."""
        for kind, name, count in (
            (StepImage, "steps", end.steps),
            (AttemptImage, "attempts", end.attempts),
            (SignalImage, "signals", end.signals),
            (LinkImage, "links", end.links),
            (ForgottenImage, "forgotten", end.forgotten),
        ):
            lines = self._counts[kind]
            _demand(lines == count, f"end.{name}", f"is {count}, but {lines} came: lines are missing, or come twice.")

    def _fields(self, step: StepImage | ForgottenImage, kind: str) -> None:
        """What steps of the history and discarded ones have in common."""
        _demand(not step.step_id.startswith(_RESERVED), f"{kind}.step_id", f"{step.step_id!r} is reserved.")
        checks.name(step.step_id, f"{kind}.step_id")
        checks.name(step.name, f"{kind}.name")
        for field in ("parent_step_id", "parallel_group_id", "worker_id"):
            checks.optional_name(getattr(step, field) or "", f"{kind}.{field}")
        for field in ("created_at", "started_at", "finished_at", "retry_at", "wake_at"):
            checks.timestamp(getattr(step, field), f"{kind}.{field}")
        checks.within(step.attempt, 1, checks.INT32_END - 1, f"{kind}.attempt")
        checks.within(step.timeout_ms, 0, limits.DURATION_MAX_US // 1_000, f"{kind}.timeout_ms")
        checks.retry(step.retry, f"{kind}.retry")
        _uuid(step.child_run_id, f"{kind}.child_run_id")
        _error(step.error, f"{kind}.error")
        for name, data in (("input", step.input), ("output", step.output), ("details", step.details)):
            self._data(data, f"{kind}.{name}")

    def _forgotten(self, step: ForgottenImage) -> None:
        self._fields(step, "forgotten")
        checks.timestamp(step.retried_at, "forgotten.retried_at")
        checks.within(step.seq, 0, self._last_seq, "forgotten.seq")
        for field in ("begun_seq", "retry_seq"):
            checks.within(getattr(step, field), 1, self._last_seq, f"forgotten.{field}")
        misfit = f"does not fit a discarded step that is {step.status}."
        _demand(step.status in _RESULTS, "forgotten.status", f"is {step.status}: a discarded step has ended.")
        _demand((step.status is StepStatus.FAILED) == (step.error is not None), "forgotten.error", misfit)
        _demand(step.retry_at is None, "forgotten.retry_at", misfit)
        data = (read_data(each, "forgotten") for each in (step.input, step.output, step.details))
        self._forgotten_bytes += sum(len(each.data) for each in data if each is not None)
        for counted, most, what in (
            (self._counts[ForgottenImage], limits.FORGOTTEN_STEPS, "line"),
            (self._forgotten_bytes, limits.FORGOTTEN_BYTES, "byte"),
        ):
            _demand(counted <= most, "forgotten", f"exceeds {most} {what}s, the limit of a run.")

    def _step(self, step: StepImage) -> None:
        self._fields(step, "step")
        self._seq(step.begun_seq, "step.begun_seq")
        if step.seq and step.seq != step.begun_seq and step.status is not StepStatus.ABANDONED:
            self._seq(step.seq, "step.seq")
        checks.within(step.seq, 0, self._last_seq, "step.seq")
        _demand(
            self._counts[StepImage] <= limits.STEPS_PER_RUN + limits.CLEANUP_STEPS,
            "step",
            f"is one more than {limits.STEPS_PER_RUN + limits.CLEANUP_STEPS}, the limit.",
        )
        _shape(step)

    def _seq(self, seq: int, field: str) -> None:
        checks.within(seq, 1, self._last_seq, field)
        _demand(seq not in self._seqs, field, f"{seq} occurs twice: every seq is unique.")
        self._seqs.add(seq)

    def _attempt(self, attempt: AttemptImage) -> None:
        checks.name(attempt.step_id, "attempt.step_id")
        checks.optional_name(attempt.worker_id or "", "attempt.worker_id")
        for field in ("started_at", "finished_at", "retry_at"):
            checks.timestamp(getattr(attempt, field), f"attempt.{field}")
        checks.within(attempt.attempt, 1, checks.INT32_END - 1, "attempt.attempt")
        checks.within(attempt.forgotten, 0, checks.INT64_END - 1, "attempt.forgotten")
        for field in ("begun_seq", "seq"):
            checks.within(getattr(attempt, field), 1, self._last_seq, f"attempt.{field}")
        key = (attempt.step_id, attempt.seq)
        _demand(
            key not in self._attempt_seqs,
            "attempt.seq",
            f"{attempt.seq} occurs twice for this step: every seq is unique.",
        )
        self._attempt_seqs.add(key)
        _error(attempt.error, "attempt.error")
        self._data(attempt.input, "attempt.input")

    def _signal(self, signal: SignalImage) -> None:
        checks.within(signal.number, self._last_signal + 1, checks.INT64_END - 1, "signal.number")
        self._last_signal = signal.number
        checks.name(signal.name, "signal.name")
        checks.name(signal.request_id, "signal.request_id")
        checks.optional_name(signal.step_id or "", "signal.step_id")
        checks.timestamp(signal.received_at, "signal.received_at")
        self._payload(require_data(signal.payload, "signal.payload"), "signal.payload")
        start = read_data(signal.start_request, "signal.start_request")
        if start is not None:
            self._start_request(start.data)

    def _start_request(self, data: bytes) -> None:
        """It starts a run when this one ends, and then nothing can refuse it."""
        try:
            request = read_start_request(data)
        except msgspec.DecodeError as error:
            message = f"signal.start_request is not the start of a run: {error}."
            raise InvalidArgument(message, field="signal.start_request") from None
        checks.start(msgspec.structs.replace(request, namespace=DEFAULT_NAMESPACE), 0, self._payload_bytes)

    def _data(self, data: Data | None, field: str) -> None:
        self._payload(read_data(data, field), field)

    def _payload(self, payload: Payload | None, field: str) -> None:
        checks.payload(payload, field, self._payload_bytes)


def _state(image: RunImage) -> None:
    """Checks the other fields of a run against its status."""
    status = image.status
    failed = status in (RunStatus.FAILED, RunStatus.CANCELLED)
    sleeping = status is RunStatus.SLEEPING
    misfit = f"does not fit status {status}."
    rules: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("run.finished_at", lambda: status.ended == (image.finished_at is not None)),
        ("run.error", lambda: failed == (image.error is not None)),
        ("run.continued_as", lambda: image.continued_as is None or status is RunStatus.COMPLETED),
        ("run.output", lambda: image.output is None or status is RunStatus.COMPLETED),
        ("run.wait_reason", lambda: sleeping == (image.wait_reason is not None)),
        ("run.wake_at", lambda: image.wake_at is None or sleeping),
        ("run.wake_at", lambda: not sleeping or image.wait_reason not in _TIMED or image.wake_at is not None),
        ("run.ready_at", lambda: image.ready_at is None or status is RunStatus.PENDING),
        ("run.paused_wake_at", lambda: image.paused_wake_at is None or status is RunStatus.PAUSED),
        ("run.pause_requested", lambda: not image.pause_requested or status is RunStatus.RUNNING),
        ("run.lease", lambda: status is not RunStatus.RUNNING or image.lease > 0),
    )
    for field, holds in rules:
        _demand(holds(), field, misfit)
    _demand(
        (image.cancel_requested_at is None) == (image.cancel_by is None),
        "run.cancel_by",
        "and run.cancel_requested_at go together.",
    )


def _shape(step: StepImage) -> None:
    """Checks the other fields of a step against its status and kind."""
    status, kind = step.status, step.kind
    misfit = f"does not fit a {kind} step that is {status}."
    rules: tuple[tuple[str, bool], ...] = (
        ("step.retry_at", (status is StepStatus.PENDING) == (step.retry_at is not None)),
        ("step.error", (status is StepStatus.FAILED) == (step.error is not None)),
        ("step.finished_at", (status in _RESULTS) == (step.finished_at is not None)),
        ("step.seq", (status in _RESULTS) == (step.seq > 0)),
        ("step.wake_at", kind is not StepKind.SLEEP or step.wake_at is not None),
        ("step.wake_at", step.wake_at is None or kind in (StepKind.SLEEP, StepKind.SIGNAL)),
        ("step.child_run_id", step.child_run_id is None or kind is StepKind.CHILD),
    )
    for field, holds in rules:
        _demand(holds, field, misfit)

"""Checks of what workers say. On the hot path: the usual operation costs about a microsecond here."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ..core import limits
from ..core.commands import (
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    FailRun,
    FailStep,
    FinishSleep,
    Park,
    ReleaseRun,
    StartRun,
)
from ..core.errors import ErrorDetail, InvalidArgument
from ..core.records import Payload
from . import checks

Failing = TypeVar("Failing", FailStep, FailRun, CancelRun, FailRun | CancelRun)

_CUT = b" [cut]"


class Operations:
    """Answers the command to be written (errors are cut to their limits, not refused: a failure must be recordable)."""

    def __init__(self, payload_bytes: int) -> None:
        self._payload_bytes = payload_bytes
        self._checks: dict[type, Callable[[Any], Command]] = {
            BeginStep: self._begin_step,
            CompleteStep: self._complete_step,
            FailStep: self._fail_step,
            BeginSleep: self._begin_sleep,
            FinishSleep: self._finish_sleep,
            Park: self._park,
            CompleteRun: self._complete_run,
            FailRun: self._close_with_error,
            CancelRun: self._close_with_error,
            ReleaseRun: self._release,
        }

    def check(self, command: Command) -> Command:
        """Raises InvalidArgument."""
        check = self._checks.get(command.__class__)
        if check is None or isinstance(command, StartRun):
            raise InvalidArgument("this is no operation of a worker.", field="kind")
        lease = command.lease
        if not (0 <= lease.counter < checks.INT64_END and 0 <= lease.nonce < checks.INT64_END):
            raise InvalidArgument("lease is not one that was given by a claim.", field="lease")
        return check(command)

    def _payload(self, payload: Payload, field: str) -> None:
        if payload.metadata or len(payload.data) > self._payload_bytes:
            checks.payload(payload, field, self._payload_bytes)

    def _begin_step(self, command: BeginStep) -> BeginStep:
        checks.name(command.step_id, "step_id")
        if command.name is not command.step_id:
            checks.name(command.name, "step_name")
        _attempt(command.attempt)
        if command.retry is not None:
            checks.retry(command.retry, "retry_policy")
        if command.timeout_ms:
            checks.within(command.timeout_ms, 0, limits.DURATION_MAX_US // 1_000, "timeout_ms")
        if command.input is not None:
            self._payload(command.input, "input")
        checks.optional_name(command.parent_step_id, "parent_step_id")
        checks.optional_name(command.parallel_group_id, "parallel_group_id")
        return command

    def _complete_step(self, command: CompleteStep) -> CompleteStep:
        checks.name(command.step_id, "step_id")
        _attempt(command.attempt)
        self._payload(command.output, "output")
        return command

    def _fail_step(self, command: FailStep) -> FailStep:
        checks.name(command.step_id, "step_id")
        _attempt(command.attempt)
        return _with_bounded_error(command)

    def _begin_sleep(self, command: BeginSleep) -> BeginSleep:
        checks.name(command.step_id, "step_id")
        checks.name(command.name, "step_name")
        if (command.duration_us is None) == (command.until is None):
            raise InvalidArgument("a sleep has a duration or an end: give exactly one.", field="duration")
        if command.duration_us is not None:
            checks.within(command.duration_us, 0, limits.DURATION_MAX_US, "duration (us)")
        checks.timestamp(command.until, "until")
        checks.optional_name(command.parent_step_id, "parent_step_id")
        checks.optional_name(command.parallel_group_id, "parallel_group_id")
        return command

    def _finish_sleep(self, command: FinishSleep) -> FinishSleep:
        checks.name(command.step_id, "step_id")
        return command

    def _park(self, command: Park) -> Park:
        checks.batch_size(command.waits, limits.STEPS_PER_RUN, "waits")
        for step_id in command.waits:
            checks.name(step_id, "waits")
        checks.within(command.known_seq, 0, checks.INT64_END - 1, "known_seq")
        return command

    def _complete_run(self, command: CompleteRun) -> CompleteRun:
        self._payload(command.output, "output")
        return command

    def _close_with_error(self, command: FailRun | CancelRun) -> FailRun | CancelRun:
        return _with_bounded_error(command)

    def _release(self, command: ReleaseRun) -> ReleaseRun:
        checks.reason(command.reason)
        return command


def _attempt(attempt: int) -> None:
    if not 0 <= attempt < checks.INT32_END:
        checks.within(attempt, 0, checks.INT32_END - 1, "attempt")


def _with_bounded_error(command: Failing) -> Failing:
    bounded = bounded_error(command.error)
    return command if bounded is command.error else msgspec.structs.replace(command, error=bounded)


def bounded_error(error: ErrorDetail, causes: int = limits.ERROR_CAUSES) -> ErrorDetail:
    """The same error if it is within its limits, else what fits, with a mark where it was cut."""
    cause = error.cause
    if cause is not None:
        cause = bounded_error(cause, causes - 1) if causes > 1 else None
    message = _cut(error.message, limits.ERROR_MESSAGE_BYTES)
    traceback = _cut(error.traceback, limits.ERROR_TRACEBACK_BYTES)
    if cause is error.cause and message is error.message and traceback is error.traceback and _is_plain(error):
        return error
    return msgspec.structs.replace(
        error,
        message=message,
        traceback=traceback,
        cause=cause,
        type=_cut(error.type, limits.NAME_BYTES),
        bases=tuple(_cut(base, limits.NAME_BYTES) for base in error.bases[: limits.METADATA_ENTRIES]),
        subject=_cut(error.subject, limits.NAME_BYTES),
        subject_id=_cut(error.subject_id, limits.NAME_BYTES),
        metadata=_cut_entries(error.metadata),
        retry_after_ms=min(max(error.retry_after_ms, 0), limits.DURATION_MAX_US // 1_000),
    )


def _is_plain(error: ErrorDetail) -> bool:
    """Whether the short fields are within their limits as they are."""
    short = (error.type, error.subject, error.subject_id, *error.bases)
    return (
        len(error.bases) <= limits.METADATA_ENTRIES
        and all(_cut(part, limits.NAME_BYTES) is part for part in short)
        and _cut_entries(error.metadata) is error.metadata
        and 0 <= error.retry_after_ms <= limits.DURATION_MAX_US // 1_000
    )


def _cut_entries(metadata: dict[str, str]) -> dict[str, str]:
    if not metadata:
        return metadata
    cut = {
        _cut(key, limits.NAME_BYTES): _cut(value, limits.ERROR_MESSAGE_BYTES)
        for key, value in list(metadata.items())[: limits.METADATA_ENTRIES]
    }
    return metadata if cut == metadata else cut


def _cut(text: str, limit_bytes: int) -> str:
    """At most so many bytes of UTF-8, without NUL and lone surrogates, which no database takes."""
    if len(text) * 4 <= limit_bytes and "\0" not in text and (text.isascii() or text.isprintable()):
        return text
    data = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    if len(data) > limit_bytes:
        data = data[: limit_bytes - len(_CUT)].decode("utf-8", "ignore").encode() + _CUT
    cut = data.decode()
    return text if cut == text else cut

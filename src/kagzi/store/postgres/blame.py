"""Which command a failed statement fails for, told by looking at the commands. Never needed while all is well."""

from collections.abc import Iterator, Mapping

from ...core.commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    FinishSleep,
    PauseDiverged,
    RecordPatch,
    SetStatus,
    StartChild,
    StartRun,
    WaitSignal,
)
from ...core.error_details import ErrorDetail
from ...core.ids import is_uuid
from ...core.outcomes import Outcome, RunNotFound
from ...core.records import Payload
from ...core.refusals import unstorable
from .refusals import invalid_argument

_OF_STEPS = (
    BeginStep,
    BeginSleep,
    CompleteStep,
    FailStep,
    FinishSleep,
    WaitSignal,
    StartChild,
    DecideRace,
    RecordPatch,
    BeatStep,
)


def fault_of(command: Command) -> Outcome | None:
    """The refusal of a command that PostgreSQL cannot store; None if it looks sound."""
    if not is_uuid(command.run.run_id):
        if isinstance(command, StartRun):
            return invalid_argument("run_id is not a UUID in its canonical form", field="run_id")
        return RunNotFound()
    named = command.new_run_id if isinstance(command, ContinueAsNew) else ""
    named = command.start.run.run_id if isinstance(command, StartChild) else named
    if named and not is_uuid(named):
        return invalid_argument("the new run's id is not a UUID in its canonical form", field="run_id")
    for field, text in _columns(command):
        if "\x00" in text or not _encodable(text):
            return unstorable(field)
    for field, text in _documents(command):
        if not _encodable(text):
            return unstorable(field)
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _columns(command: Command) -> Iterator[tuple[str, str]]:
    """Text that is stored as such: no NUL."""
    yield "namespace", command.run.namespace
    if isinstance(command, (BeginStep, BeginSleep, WaitSignal, StartChild)):
        yield "parent_step_id", command.parent_step_id
        yield "parallel_group_id", command.parallel_group_id
    if isinstance(command, _OF_STEPS):
        yield "step_id", command.step_id
    if isinstance(command, (BeginStep, BeginSleep, StartChild, DecideRace, RecordPatch)):
        yield "name", command.name
    yield from _other_columns(command)


def _other_columns(command: Command) -> Iterator[tuple[str, str]]:
    if isinstance(command, WaitSignal):
        yield "signal_name", command.signal_name
    if isinstance(command, DecideRace):
        yield "parent_step_id", command.parent_step_id
        for loser in command.losers:
            yield "losers", loser
    if isinstance(command, SetStatus):
        yield "text", command.text
    if isinstance(command, ContinueAsNew):
        yield "version", command.version or ""
    if isinstance(command, PauseDiverged):
        yield "build_id", command.build_id
    if isinstance(command, StartChild):
        yield from _columns(command.start)
    if isinstance(command, StartRun):
        yield from _start_columns(command)


def _start_columns(command: StartRun) -> Iterator[tuple[str, str]]:
    yield "workflow_id", command.workflow_id
    yield "workflow_type", command.workflow_type
    yield "request_id", command.request_id
    yield "version", command.version or ""
    for key, value in command.labels.items():
        yield "labels", key
        yield "labels", value
    if command.assignment is not None:
        yield "worker_id", command.assignment.worker_id
        yield "version", command.assignment.version
    if command.signal is not None:
        yield "signal.name", command.signal.name
        yield "signal.request_id", command.signal.request_id


def _documents(command: Command) -> Iterator[tuple[str, str]]:
    """Text inside JSON, where a NUL is escaped."""
    if isinstance(command, (FailStep, FailRun, CancelRun)):
        yield from _error(command.error)
    if isinstance(command, (CompleteStep, CompleteRun)):
        yield from _metadata("output", command.output)
    if isinstance(command, (BeginStep, StartRun)):
        yield from _metadata("input", command.input)
        for name in (*command.retry.non_retryable_errors, *command.retry.retry_on_errors) if command.retry else ():
            yield "retry", name
    if isinstance(command, StartRun):
        yield from _metadata("context", command.context)
        yield from _metadata("signal.payload", command.signal.payload if command.signal else None)
    if isinstance(command, StartChild):
        yield from _documents(command.start)
    if isinstance(command, BeatStep):
        yield from _metadata("details", command.details)
    if isinstance(command, ContinueAsNew):
        yield from _metadata("input", command.input)
    if isinstance(command, PauseDiverged):
        yield from _error(command.problem)


def _metadata(field: str, payload: Payload | None) -> Iterator[tuple[str, str]]:
    metadata: Mapping[str, str] = (payload.metadata if payload else None) or {}
    for pair in metadata.items():
        for text in pair:
            yield f"{field}.metadata", text


def _error(error: ErrorDetail | None) -> Iterator[tuple[str, str]]:
    while error is not None:
        for text in (error.message, error.type, *error.bases, error.traceback, error.subject, error.subject_id):
            yield "error", text
        for pair in error.metadata.items():
            for text in pair:
                yield "error.metadata", text
        error = error.cause

"""Which command a failed statement fails for, told by looking at the commands. Never needed while all is well."""

from collections.abc import Iterator, Mapping

from ...core.commands import (
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    FailRun,
    FailStep,
    FinishSleep,
    StartRun,
)
from ...core.errors import ErrorDetail
from ...core.ids import is_uuid
from ...core.outcomes import Outcome, RunNotFound
from ...core.records import Payload
from .refusals import invalid_argument


def fault_of(command: Command) -> Outcome | None:
    """The refusal of a command that PostgreSQL cannot store; None if it looks sound."""
    if not is_uuid(command.run.run_id):
        if isinstance(command, StartRun):
            return invalid_argument("run_id is not a UUID in its canonical form", field="run_id")
        return RunNotFound()
    for field, text in _columns(command):
        if "\x00" in text:
            return invalid_argument(f"{field} contains a NUL character, which PostgreSQL cannot store", field=field)
        if not _encodable(text):
            return _lone_surrogate(field)
    for field, text in _documents(command):
        if not _encodable(text):
            return _lone_surrogate(field)
    return None


def _lone_surrogate(field: str) -> Outcome:
    return invalid_argument(f"{field} contains a lone surrogate: it is no valid Unicode text", field=field)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _columns(command: Command) -> Iterator[tuple[str, str]]:
    """Text that is stored as such: no NUL."""
    yield "namespace", command.run.namespace
    if isinstance(command, (BeginStep, BeginSleep)):
        yield "name", command.name
        yield "parent_step_id", command.parent_step_id
        yield "parallel_group_id", command.parallel_group_id
    if isinstance(command, (BeginStep, BeginSleep, CompleteStep, FailStep, FinishSleep)):
        yield "step_id", command.step_id
    if isinstance(command, StartRun):
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


def _documents(command: Command) -> Iterator[tuple[str, str]]:
    """Text inside JSON, where a NUL is escaped."""
    if isinstance(command, (FailStep, FailRun, CancelRun)):
        yield from _error(command.error)
    if isinstance(command, (CompleteStep, CompleteRun)):
        yield from _metadata("output", command.output)
    if isinstance(command, (BeginStep, StartRun)):
        yield from _metadata("input", command.input)
        for name in command.retry.non_retryable_errors if command.retry else ():
            yield "retry", name
    if isinstance(command, StartRun):
        yield from _metadata("context", command.context)


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

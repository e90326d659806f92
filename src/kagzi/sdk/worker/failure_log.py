"""Logs failures: one line for each failed attempt of a step and for each failed run, with what happens next.

A line is written after the server has responded, so that it says what really happens next, and never on replay:
failures in the history were logged when they happened. Records carry shortened tracebacks (`exc_info`).
"""

import logging
from dataclasses import dataclass

from ...core.error_details import ErrorDetail, ErrorKind
from ...core.errors import ChildError, RequestError, StepError
from ...core.records import ENCODING
from ...core.retry.policy import SERVER_DEFAULT
from ...core.retry.reasons import why_not_retried
from ...core.text.printable import brief, with_margin
from ...core.times import US_PER_S
from ...v1 import worker_pb2 as pb
from ..transport.payload_codec import CLEAR
from ..workflow.failures import leaves_of
from ..workflow.retry import Retry
from .log_context import fields_of, is_about_run, name_of
from .tracebacks import shortened_exception, shortened_traceback

logger = logging.getLogger("kagzi.worker")

_TEXT_CHARS = 500  # of an error's text in a log line; the traceback has more


class ShortenTracebacks(logging.Filter):
    """Sets `exc_text`, which handlers print instead of formatting the exception: every handler then prints the
    shortened traceback, and none of its lines looks like a log line. The record keeps the exception itself for handlers
    that collect exceptions.

    Applies only to records about a run: for a bug in Kagzi every frame matters."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info and is_about_run(record) else None
        if error is not None and not record.exc_text:
            record.exc_text = with_margin(shortened_exception(error))
        return True


logger.addFilter(ShortenTracebacks())


@dataclass(slots=True, eq=False)
class FailedAttempt:
    """A failed attempt of a step, until it is known what happens next. Exactly one of the methods is called, once."""

    _task: pb.Task
    _step_id: str
    _attempt: int
    _retry: Retry | None
    _detail: ErrorDetail
    _error: BaseException | None
    _encoded: bool = False

    def retried(self, remaining_us: int) -> None:
        """`remaining_us`: when the answer was written. A delay that the step asked for is logged as asked for."""
        self._log(logging.WARNING, f"retrying {in_time(max(remaining_us, self._detail.retry_after_ms * 1_000))}")

    def exhausted(self, recorded: ErrorDetail) -> None:
        """`recorded`: the error as the server stored it."""
        self._log(logging.ERROR, self._why_no_more(recorded))

    def unrecorded(self) -> None:
        """The run was stopped or lost before the server recorded the attempt."""
        self._log(logging.WARNING, "not recorded, since the run was interrupted: the step may be tried again")

    def _why_no_more(self, recorded: ErrorDetail) -> str:
        detail, attempts_max = self._detail, self._attempts_max()
        name = detail.type.rpartition(".")[2] or "this error"
        if detail.kind is ErrorKind.LOST:
            return "not retried: once=True allows one execution"
        if attempts_max is not None and self._attempt >= attempts_max:
            return "no attempts left"
        if recorded.exhausted and self._task.deadline_at_us:
            return "not retried: the run's deadline comes first"
        policy = SERVER_DEFAULT if self._retry is None else self._retry.to_policy()
        return why_not_retried(policy, recorded) or f"not retried: {name} is not retryable"

    def _attempts_max(self) -> int | None:
        """None: no limit."""
        return SERVER_DEFAULT.maximum_attempts if self._retry is None else self._retry.max_attempts

    def _log(self, level: int, what_next: str) -> None:
        if not logger.isEnabledFor(level):
            return
        attempts_max = self._attempts_max()
        of = f" of {attempts_max}" if attempts_max is not None and self._attempt <= attempts_max else ""
        logger.log(
            level,
            "%s: step %r failed, attempt %d%s: %s. %s",
            name_of(self._task),
            self._step_id,
            self._attempt,
            of,
            what_next,
            _text(self._detail, self._error, encoded=self._encoded),
            exc_info=None if self._encoded else _with_traceback(self._error),
            extra=fields_of(self._task, self._step_id, self._attempt),
        )


def _with_traceback(error: BaseException | None) -> BaseException | None:
    """None if Kagzi's own code refused a value: its frames do not help the user."""
    return None if isinstance(error, RequestError) and not shortened_traceback(error.__traceback__) else error


def _text(detail: ErrorDetail, error: BaseException | None, *, encoded: bool) -> str:
    """`encoded`: payloads are encoded, so no log repeats the texts of errors, only their types and frames, which are
    code. The frames of causes are left out: the exception would bring the texts of its causes along."""
    if not encoded:
        return brief(detail.text, _TEXT_CHARS)
    frames = "" if error is None else shortened_traceback(error.__traceback__)
    return f"{detail.type or 'error'} (its text is encoded: see kagzi get)" + (
        f"\n{with_margin(frames.rstrip())}" if frames else ""
    )


def run_failed(
    task: pb.Task, error: BaseException, detail: ErrorDetail, retry_in_us: int | None, *, encoded: bool = False
) -> None:
    """One line, with a traceback unless it is only about steps and children, which have their own lines."""
    level = logging.ERROR if retry_in_us is None else logging.WARNING
    if not logger.isEnabledFor(level):
        return
    again = "" if retry_in_us is None else f", attempt {task.attempt}: retrying {in_time(retry_in_us)}"
    where = f" in step {detail.subject_id!r}" if detail.subject == "step" and detail.subject_id else ""
    logged = all(isinstance(each, (StepError, ChildError)) for each in leaves_of(error))
    logger.log(
        level,
        "%s: the run failed%s%s. %s",
        name_of(task),
        where,
        again,
        _text(detail, None if logged else error, encoded=encoded),
        exc_info=None if logged or encoded else _with_traceback(error),
        extra=fields_of(task),
    )


def run_paused(task: pb.Task, why: str, problem: ErrorDetail, *, encoded: bool = False) -> None:
    """`why`: the kind of problem."""
    is_clear = not encoded or problem.metadata.get(ENCODING) == CLEAR
    logger.error(
        "%s is paused, %s: %s. See: kagzi explain %s",
        name_of(task),
        why,
        problem.message.rstrip(".") if is_clear else "its text is encoded",
        task.run_id,
        extra=fields_of(task),
    )


def run_abandoned(task: pb.Task, reason: str) -> None:
    """This worker has given up the run: another worker holds it, it has ended, or its deadline has passed."""
    logger.warning(
        "%s is abandoned: %s. This worker no longer records anything for it",
        name_of(task),
        reason.rstrip(".") or "its lease was lost",
        extra=fields_of(task),
    )


def in_time(microseconds: int) -> str:
    """The delay of a retry, such as `in 2.0 s`."""
    seconds = microseconds / US_PER_S
    if seconds < 0.001:
        return "at once"
    if seconds < 1:
        return f"in {seconds * 1_000:.0f} ms"
    if seconds < 120:
        return f"in {seconds:.1f} s" if seconds < 9.5 else f"in {seconds:.0f} s"
    return f"in {seconds / 60:.0f} min"

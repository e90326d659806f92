"""Converts exceptions of user code to error details, which are stored, sent and shown."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from ...core import limits
from ...core.error_details import OWN_CODE, ErrorCode, ErrorDetail
from ...core.errors import ChildError, FailureError, KagziError, NonRetryable, StepError
from ...core.raised.exceptions import qualified_name
from ...core.times import US_PER_MS, us_from_timedelta
from ..worker.tracebacks import shortened_traceback
from .error_kinds import kind_of, own_code

STEP_ATTRIBUTE = "kagzi_step_id"  # the step id, set on an error that is the result of a step
_BASES_LEFT_OUT = frozenset({"object", "BaseException", "Exception"})


def describe(error: BaseException) -> ErrorDetail:
    """The error as it is recorded. The server decides whether it is retried: by the policy, or else by the kind of the
    error."""
    return _describe(error, limits.ERROR_CAUSES, set())


def _describe(error: BaseException, causes: int, seen: set[int]) -> ErrorDetail:
    seen.add(id(error))
    cause = _cause_of(error)
    if causes == 0 or cause is None or id(cause) in seen:
        # The cause of a recorded failure is the error that it carries: an error raised from a StepError shows the
        # step's own error.
        cause_detail = _truncated(error.error, causes) if isinstance(error, FailureError) else None
    else:
        cause_detail = _describe(cause, causes - 1, seen)
    own = error if isinstance(error, KagziError) else None
    return ErrorDetail(
        code=own.code if own else ErrorCode.USER,
        kind=kind_of(error),
        message=_text(_message(error), limits.ERROR_MESSAGE_BYTES),
        type=qualified_name(type(error)),
        bases=tuple(_base_names(type(error))),
        traceback=_text(shortened_traceback(error.__traceback__), limits.ERROR_TRACEBACK_BYTES, keep_end=True),
        non_retryable=isinstance(error, NonRetryable),
        retry_after_ms=_retry_after_ms(own),
        metadata=dict(own.metadata) if own else _metadata(error),
        cause=cause_detail,
    )


def _cause_of(error: BaseException) -> BaseException | None:
    """The cause of the error. For a group without one, its first error: the frames of the group itself say little."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        return cause
    first = next(leaves_of(error))
    return None if first is error else first


def _truncated(detail: ErrorDetail, causes: int) -> ErrorDetail | None:
    """The detail with at most `causes` errors in its chain, itself included."""
    if causes == 0:
        return None
    cause = None if detail.cause is None else _truncated(detail.cause, causes - 1)
    return detail if cause is detail.cause else msgspec.structs.replace(detail, cause=cause)


def describe_step_error(error: StepError, *, step_id: str) -> ErrorDetail:
    """The detail of a run that fails because a step failed: the step's error and id. Retrying the run does not help."""
    return msgspec.structs.replace(error.error, subject="step", subject_id=step_id, non_retryable=True)


def describe_end(error: BaseException) -> ErrorDetail:
    """The detail of the error that left a workflow function. The run is not retried if a step failed: the recorded
    failure would be replayed."""
    if isinstance(error, StepError):
        return describe_step_error(error, step_id=error.step)
    step_id = getattr(error, STEP_ATTRIBUTE, "")
    if step_id:  # a failed child or a signal timeout, which are recorded too
        own = describe(error)
        cause = error.error if isinstance(error, ChildError) else own.cause
        return msgspec.structs.replace(own, subject="step", subject_id=step_id, non_retryable=True, cause=cause)
    leaves = list(leaves_of(error))
    steps = [leaf for leaf in leaves if isinstance(leaf, StepError)]
    detail = describe(error)
    if not steps or leaves == [error]:
        return detail
    first = describe_step_error(steps[0], step_id=steps[0].step)
    final = all(isinstance(leaf, (StepError, ChildError, NonRetryable)) for leaf in leaves)
    texts = "; ".join(describe(leaf).text for leaf in leaves[:5])
    return msgspec.structs.replace(
        detail,
        message=_text(f"{detail.message}: {texts}", limits.ERROR_MESSAGE_BYTES),
        kind=first.kind,
        subject=first.subject,
        subject_id=first.subject_id,
        non_retryable=final,
        cause=first,
    )


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group and of the groups in it. Any other error is its own only leaf."""
    if isinstance(error, BaseExceptionGroup):
        inner: tuple[BaseException, ...] = cast("Any", error).exceptions  # a group may contain any errors
        for each in inner:
            yield from leaves_of(each)
    else:
        yield error


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  __str__ is user code; its failure must not hide the error
        return f"<{type(error).__name__}.__str__ raised {type(broken).__name__}>"


def _metadata(error: BaseException) -> dict[str, str]:
    code = own_code(error)
    return {OWN_CODE: code} if code else {}


def _base_names(cls: type[BaseException]) -> list[str]:
    """The names of the base classes, each once, without the obvious ones. A class that is not exported has the name of
    an exported one."""
    names = dict.fromkeys(qualified_name(base) for base in cls.__mro__ if issubclass(base, BaseException))
    return [name for name in names if name not in _BASES_LEFT_OUT and name != qualified_name(cls)]


def _retry_after_ms(error: KagziError | None) -> int:
    if error is None or error.retry_after is None:
        return 0
    return -(-us_from_timedelta(error.retry_after) // US_PER_MS)


def _text(text: str, limit_bytes: int, *, keep_end: bool = False) -> str:
    """Text that every store accepts: no NUL, no lone surrogates, not too long."""
    data = text.replace("\0", "\\0").encode("utf-8", "backslashreplace")
    if len(data) > limit_bytes:
        data = data[-limit_bytes:] if keep_end else data[:limit_bytes]
    return data.decode("utf-8", "ignore")

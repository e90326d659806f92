"""Exceptions of user code as error details: what is stored, sent and shown."""

import traceback
from collections.abc import Iterator
from pathlib import PurePath
from types import TracebackType

import msgspec

from ..core import limits
from ..core.errors import (
    OWN_CODE,
    ChildError,
    ErrorCode,
    ErrorDetail,
    KagziError,
    NonRetryable,
    StepError,
    qualified_name,
)
from ..core.times import US_PER_MS, us_from_timedelta
from .error_kinds import kind_of, own_code

_SDK_DIRECTORY = str(PurePath(__file__).parent)
_FRAMES = 30
STEP_ATTRIBUTE = "kagzi_step_id"  # of an error that is a step's result: which step
_BASES_LEFT_OUT = frozenset({"object", "BaseException", "Exception"})


def describe(error: BaseException) -> ErrorDetail:
    """The error as it is recorded. Whether it is retried is up to the server: it knows the policy, and the kind decides what the
    policy leaves open."""
    return _describe(error, limits.ERROR_CAUSES, set())


def _describe(error: BaseException, causes: int, seen: set[int]) -> ErrorDetail:
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if causes == 0 or cause is None or id(cause) in seen:
        cause_detail = None
    else:
        cause_detail = _describe(cause, causes - 1, seen)
    own = error if isinstance(error, KagziError) else None
    return ErrorDetail(
        code=own.code if own else ErrorCode.USER,
        kind=kind_of(error),
        message=_text(_message(error), limits.ERROR_MESSAGE_BYTES),
        type=qualified_name(type(error)),
        bases=tuple(_base_names(type(error))),
        traceback=_traceback(error),
        non_retryable=isinstance(error, NonRetryable),
        retry_after_ms=_retry_after_ms(own),
        metadata=dict(own.metadata) if own else _metadata(error),
        cause=cause_detail,
    )


def describe_step_error(error: StepError, *, step_id: str) -> ErrorDetail:
    """The detail of a run that fails because a step did: the step's error, and which step it was. No retry of the run helps."""
    return msgspec.structs.replace(error.error, subject="step", subject_id=step_id, non_retryable=True)


def describe_end(error: BaseException) -> ErrorDetail:
    """The error that left a workflow function. A failed step stays failed in every further try: then the run is not retried."""
    if isinstance(error, StepError):
        return describe_step_error(error, step_id=error.step)
    step_id = getattr(error, STEP_ATTRIBUTE, "")
    if step_id:  # a child that failed, a signal that did not come: recorded results as well
        own = describe(error)
        cause = error.error if isinstance(error, ChildError) else own.cause
        return msgspec.structs.replace(own, subject="step", subject_id=step_id, non_retryable=True, cause=cause)
    leaves = list(_leaves(error))
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


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  a group of anything
            yield from _leaves(inner)  # pyright: ignore[reportUnknownArgumentType]  a group of anything
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


def _base_names(cls: type[BaseException]) -> Iterator[str]:
    for base in cls.__mro__[1:]:
        if issubclass(base, BaseException) and (name := qualified_name(base)) not in _BASES_LEFT_OUT:
            yield name


def _retry_after_ms(error: KagziError | None) -> int:
    if error is None or error.retry_after is None:
        return 0
    return -(-us_from_timedelta(error.retry_after) // US_PER_MS)


def _traceback(error: BaseException) -> str:
    frames = list(_user_frames(error.__traceback__))[-_FRAMES:]
    if not frames:
        return ""
    text = "Traceback (most recent call last):\n" + "".join(traceback.StackSummary.from_list(frames).format())
    return _text(text, limits.ERROR_TRACEBACK_BYTES, keep_end=True)


def _user_frames(trace: TracebackType | None) -> Iterator[traceback.FrameSummary]:
    for frame in traceback.extract_tb(trace):
        if str(PurePath(frame.filename).parent) != _SDK_DIRECTORY:
            yield frame


def _text(text: str, limit_bytes: int, *, keep_end: bool = False) -> str:
    """Text that every store takes: no NUL, no lone surrogates, not too long."""
    data = text.replace("\0", "\\0").encode("utf-8", "backslashreplace")
    if len(data) > limit_bytes:
        data = data[-limit_bytes:] if keep_end else data[:limit_bytes]
    return data.decode("utf-8", "ignore")

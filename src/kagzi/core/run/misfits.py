"""A signal whose value does not fit the wait it was bound to.

No code has received such a value. The run is PAUSED with a problem that names the signal; it continues when the value
is replaced or dropped, or when a build arrives that can read it. Both stores use the decisions of this module.
"""

import msgspec

from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..records import Payload
from ..text.commands import quoted
from .commands import SignalReplacement
from .outcomes import Refused
from .refusals import refused

SUBJECT = "signal"
DROPPED = "$dropped"
"""Used as the id of the step that a signal is bound to: nobody will receive this value. The row stays, so that a
repeated request is recognised."""
_NOTHING = Payload(b"")


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """`seq` is the number of the value, recorded as the result of step `step_id`."""

    signal: str
    step_id: str
    seq: int
    expected: str
    why: str


def problem_of(misfit: Misfit, where: str) -> ErrorDetail:
    """The problem of the paused run. `where` is the line of code that waited."""
    return ErrorDetail(
        code=ErrorCode.INVALID_ARGUMENT,
        kind=ErrorKind.PERMANENT,
        message=f"the value of signal {misfit.signal!r} (step {misfit.step_id!r}, number {misfit.seq}) does not fit "
        f"{misfit.expected}: {misfit.why}. The wait is at {where}. "
        "Replace the value, drop it, or deploy code that can read it",
        non_retryable=True,
        subject=SUBJECT,
        subject_id=misfit.signal,
        metadata={
            "step_id": misfit.step_id,
            "seq": str(misfit.seq),
            "expected": misfit.expected,
            "why": misfit.why,
        },
    )


def misfit_of(problem: ErrorDetail | None) -> Misfit | None:
    """None: it is another problem."""
    if problem is None or problem.subject != SUBJECT or "step_id" not in problem.metadata:
        return None
    facts = problem.metadata
    seq = facts.get("seq", "")
    return Misfit(
        signal=problem.subject_id,
        step_id=facts["step_id"],
        seq=int(seq) if seq.isdecimal() else 0,
        expected=facts.get("expected", ""),
        why=facts.get("why", ""),
    )


class MisfitWords(msgspec.Struct, frozen=True):
    sentence: str
    facts: dict[str, str]
    remedy: str


def misfit_words(misfit: Misfit, run_id: str) -> MisfitWords:
    """Why the run is paused, and the commands to type."""
    send = f"kagzi signal {quoted(run_id)} {quoted(misfit.signal)}"
    facts = {"signal": misfit.signal, "step": misfit.step_id, "seq": str(misfit.seq)}
    return MisfitWords(
        sentence=f"It is paused because the value of signal {misfit.signal!r}, number {misfit.seq} of its history, "
        f"does not fit {misfit.expected}, which step {misfit.step_id} waits for: {misfit.why}.",
        facts=facts | {"expected": misfit.expected, "why": misfit.why},
        remedy=f"Replace the value: {send} VALUE --replace. Or drop it, so that the run waits for the next one: "
        f"{send} --drop. Or deploy code that can read it: "
        "the run continues by itself when a worker with another build id registers.",
    )


def rejection_of(problem: ErrorDetail, misfit: Misfit, change: SignalReplacement) -> ErrorDetail:
    """What the history keeps of the rejected value: an earlier attempt of the wait."""
    done = "dropped" if change.payload is None else "replaced"
    return msgspec.structs.replace(
        problem,
        message=f"the value did not fit {misfit.expected}: {misfit.why}. "
        f"It was {done} by request {change.request_id!r}.",
        metadata={**problem.metadata, done: change.request_id},
    )


def kept_payload(change: SignalReplacement) -> Payload:
    """The payload of the request's row; that of a drop is empty, and only serves to recognise a repeat."""
    return _NOTHING if change.payload is None else change.payload


def is_repeat(change: SignalReplacement, *, name: str, payload: Payload, step_id: str | None) -> bool:
    """Whether the request id was first used for the same change."""
    kept = kept_payload(change)
    same = (name, payload.data, payload.metadata or {}) == (change.name, kept.data, kept.metadata or {})
    return same and (change.payload is not None or step_id == DROPPED)


def request_used(request_id: str) -> Refused:
    return refused(
        ErrorCode.CONFLICT,
        f"request_id {request_id!r} belongs to another signal that was sent to this run. Give the replacement its own.",
        subject="request_id",
        subject_id=request_id,
    )


def not_replaceable(run_id: str, name: str, *, received: bool) -> Refused:
    if received:
        message = (
            f"signal {name!r} of run {run_id} has been delivered, or is about to be. If the value does not fit, "
            "the run is paused and you can replace it then. To change a value that code has received, fork the run: "
            f"kagzi fork {quoted(run_id)} --from-step STEP --output STEP=VALUE."
        )
    else:
        message = f"run {run_id} has no signal {name!r} that can be replaced or dropped. Send it without --replace."
    return refused(ErrorCode.PRECONDITION_FAILED, message, subject=SUBJECT, subject_id=name)

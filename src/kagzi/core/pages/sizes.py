"""Estimates the size of a value in bytes, for the limits of pages, messages and queued responses. Never less than its
encoding."""

from collections.abc import Iterable, Mapping, Sequence

from .. import limits
from ..error_details import ErrorDetail
from ..records import ClaimedRun, HistoryStep, Payload
from ..run.outcomes import Fetched, Known, NotParked, Outcome, Refused, SignalBound, StepFailed

ANSWER_BYTES = 256  # a response in memory, or on the wire, without its payloads
STEP_BYTES = 200  # the same for a step of a history; ids are added
TASK_BYTES = 1_024
_ENTRY_BYTES = 16  # tags and lengths of one entry of a map
_ERROR_BYTES = 128


def payload_bytes(payload: Payload | None) -> int:
    if payload is None:
        return 0
    return len(payload.data) + (_mapping_bytes(payload.metadata) if payload.metadata else 0)


def error_bytes(error: ErrorDetail | None) -> int:
    size = 0
    while error is not None:
        texts = (error.message, error.type, error.traceback, error.subject, error.subject_id, *error.bases)
        size += _ERROR_BYTES + sum(map(_text_bytes, texts)) + _mapping_bytes(error.metadata)
        error = error.cause
    return size


def history_step_bytes(step: HistoryStep) -> int:
    size = STEP_BYTES + _text_bytes(step.step_id) + payload_bytes(step.output) + payload_bytes(step.details)
    return size if step.error is None else size + error_bytes(step.error)


def results_page(steps: Iterable[HistoryStep]) -> tuple[tuple[HistoryStep, ...], bool]:
    """As many steps as fit into one message, at least one; and whether there are more. Reads at most one step more."""
    page: list[HistoryStep] = []
    size = 0
    for step in steps:
        size += history_step_bytes(step)
        if page and size > limits.MESSAGE_SOFT_BYTES:
            return tuple(page), True
        page.append(step)
    return tuple(page), False


def task_bytes(claimed: ClaimedRun) -> int:
    texts = (claimed.workflow_id, claimed.workflow_type, claimed.version, claimed.cancel_reason, claimed.run.namespace)
    size = TASK_BYTES + sum(map(_text_bytes, texts)) + _mapping_bytes(claimed.labels)
    size += payload_bytes(claimed.input) + payload_bytes(claimed.context)
    return size + sum(map(history_step_bytes, claimed.history.steps))


def outcome_bytes(outcome: Outcome) -> int:
    """The size of an outcome, including its payloads."""
    kind = outcome.__class__
    if kind not in _CARRIERS:
        return ANSWER_BYTES
    match outcome:
        case Fetched(results=results, retries=retries) | NotParked(results=results, retries=retries):
            named = sum(_ENTRY_BYTES + _text_bytes(retry.step_id) for retry in retries)
            return ANSWER_BYTES + sum(map(history_step_bytes, results)) + named
        case Known(step=step):
            return ANSWER_BYTES + history_step_bytes(step)
        case SignalBound(payload=payload):
            return ANSWER_BYTES + payload_bytes(payload)
        case StepFailed(error=error) | Refused(error=error):
            return ANSWER_BYTES + error_bytes(error)
        case _:
            return ANSWER_BYTES


def answers_bytes(answers: Sequence[tuple[int, Outcome]]) -> int:
    """The size of the responses of one commit. Those to plain steps have no payloads, so they are only counted."""
    size = len(answers) * ANSWER_BYTES
    for _, outcome in answers:
        if outcome.__class__ in _CARRIERS:
            size += outcome_bytes(outcome) - ANSWER_BYTES
    return size


_CARRIERS = frozenset((Fetched, NotParked, Known, SignalBound, StepFailed, Refused))


def _mapping_bytes(mapping: Mapping[str, str]) -> int:
    return sum(_ENTRY_BYTES + _text_bytes(key) + _text_bytes(value) for key, value in mapping.items())


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))

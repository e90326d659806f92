"""Kagzi's own spans as OTLP messages, encoded directly from their values: common parts are encoded once.

Fields and numbers are those of encoding.py, which encodes any span; a test compares the two. Additions by a body or an
error are not supported here: such a span is encoded by encoding.py.
"""

from collections import deque
from functools import lru_cache
from struct import Struct
from typing import Protocol, TypeAlias

from ...core.traces.ids import FIRST_SPAN, NO_SPAN, AttemptIds, hashed_attempt
from .attributes import (
    CLAIM,
    MESSAGE_ID,
    RUN_ID,
    WORKFLOW_ID,
    Attributes,
    TracedRun,
    common_step_attributes,
    run_name,
    start_attributes,
    start_name,
    step_attributes,
    step_name,
    stretch_attributes,
)
from .encoding import HAS_IS_REMOTE, IS_REMOTE, SPANS, attributes_field, encode_field, encode_varint, name_field

_TAG = b"\x4a"  # attributes
_INTERNAL, _PRODUCER, _CONSUMER = b"\x30\x01", b"\x30\x04", b"\x30\x05"
_UNSET = b"\x7a\x00"  # the status
_ANY_RUN = TracedRun("", "", "", "", "")

_TRACE_ID, _SPAN_ID, _PARENT_ID = b"\x0a\x10", b"\x12\x08", b"\x22\x08"
_pack_moments = Struct("<8scQcQ").pack
_MOMENTS_BYTES = Struct("<8scQcQ").size
_pack_own = Struct("<2s16s2s8scQcQ").pack
_pack_flags = Struct("<HI").pack
_LOCAL_PARENT = _pack_flags(0x0185, HAS_IS_REMOTE)
_REMOTE_PARENT = _pack_flags(0x0185, HAS_IS_REMOTE | IS_REMOTE)


def steps_head(trace_id: bytes, parent_id: bytes, run_id: str, worker_id: str) -> bytes:
    """The common part of the attempts in one part of a stretch."""
    return b"".join((_TRACE_ID, trace_id, _PARENT_ID, parent_id, _run_id(run_id), _every_step(worker_id), _SPAN_ID))


CommonOfAttempts: TypeAlias = tuple[bytes, AttemptIds]
"""What the attempts in one part of a stretch have in common: see `steps_head`, and the ids of their spans."""


class PartOfAttempts(Protocol):
    made: CommonOfAttempts | None

    @property
    def common(self) -> CommonOfAttempts: ...


class Ended(Protocol):
    """An ended span, of which only the values are known. `part`: of an attempt; any other span encodes itself."""

    @property
    def part(self) -> PartOfAttempts | None: ...

    def encode(self) -> bytes: ...


class EndedAttempt(Protocol):
    """The values from which the span of an attempt is encoded."""

    name: str
    step_id: str
    attempt: int
    start_ns: int
    end_ns: int


def write_spans(ended: deque[Ended], most: int) -> tuple[int, bytes]:
    """Takes spans and encodes them. Many at once, and attempts in a single function: see docs/adr/0063. Returns how
    many they are, and the bytes."""
    count, parts = min(len(ended), most), list[bytes]()
    for _ in range(count):
        each = ended.popleft()
        part = each.part
        if part is None:
            parts.append(each.encode())
            continue
        span: EndedAttempt = each  # type: ignore[assignment]  # `cast` is a call
        head, ids = part.made or part.common
        own, hashed = _step(span.name, span.step_id, span.attempt)
        digest = ids.common.copy()
        digest.update(hashed)
        span_id = digest.digest()
        if span_id == NO_SPAN:
            span_id = FIRST_SPAN
        moments = _pack_moments(span_id, b"\x39", span.start_ns, b"\x41", span.end_ns)
        parts += (_begin(len(head) + _MOMENTS_BYTES + len(own)), head, moments, own)
    return count, b"".join(parts)


def run_span(
    ids: tuple[bytes, bytes, bytes],
    kind: tuple[str, str, str, str],
    own: tuple[str, str, int],
    start_ns: int,
    end_ns: int,
) -> bytes:
    """A stretch whose parent is the start. `ids`: of trace, span and parent; `kind`: workflow type, namespace, version
    and worker; `own`: run id, workflow id and claim."""
    run_id, workflow_id, claim = own
    named = _workflow_id(workflow_id) if workflow_id else b""
    return _span(ids, start_ns, end_ns, (_every_run(*kind), _message_id(run_id), named, _claim(claim)))


def start_span(
    ids: tuple[bytes, bytes, bytes],
    kind: tuple[str, str, bool],
    own: tuple[str, str],
    start_ns: int,
    end_ns: int,
) -> bytes:
    """An acknowledged start. `ids`: as in `run_span`, with an empty parent for none; `kind`: workflow type, namespace
    and whether the parent is in another process; `own`: workflow id and run id."""
    workflow_id, run_id = own
    named = _workflow_id(workflow_id) if workflow_id else b""
    return _span(ids, start_ns, end_ns, (_every_start(*kind), _message_id(run_id) if run_id else b"", named))


def _span(ids: tuple[bytes, bytes, bytes], start_ns: int, end_ns: int, others: tuple[bytes, ...]) -> bytes:
    trace_id, span_id, parent_id = ids
    own = _pack_own(_TRACE_ID, trace_id, _SPAN_ID, span_id, b"\x39", start_ns, b"\x41", end_ns)
    encoded = b"".join((own, _PARENT_ID, parent_id, *others) if parent_id else (own, *others))
    return _begin(len(encoded)) + encoded


@lru_cache(maxsize=1_024)
def _begin(size: int) -> bytes:
    """The tag and length of a span of this size."""
    return SPANS + encode_varint(size)


# --- parts that are encoded once --------------------------------------------------------------------------------------


@lru_cache(maxsize=1_024)
def _every_step(worker_id: str) -> bytes:
    common = common_step_attributes(_ANY_RUN, worker_id)
    return _INTERNAL + _LOCAL_PARENT + _UNSET + _but(common, RUN_ID)


@lru_cache(maxsize=4_096)
def _step(name: str, step_id: str, attempt: int) -> tuple[bytes, bytes]:
    """The part specific to the attempts of this number, and its hash input: the same in every run of a type."""
    own = name_field(step_name(name)) + attributes_field(_TAG, step_attributes({}, step_id, attempt))
    return own, hashed_attempt(step_id, attempt)


@lru_cache(maxsize=1_024)
def _every_run(workflow_type: str, namespace: str, version: str, worker_id: str) -> bytes:
    run = TracedRun("", namespace, workflow_type, "", version)
    common = _but(stretch_attributes(run, worker_id, 0), CLAIM)
    return name_field(run_name(workflow_type)) + _CONSUMER + _REMOTE_PARENT + _UNSET + common


@lru_cache(maxsize=1_024)
def _every_start(workflow_type: str, namespace: str, parent_is_remote: bool) -> bytes:
    parent = _REMOTE_PARENT if parent_is_remote else _LOCAL_PARENT
    common = _but(start_attributes(namespace, workflow_type))
    return name_field(start_name(workflow_type)) + _PRODUCER + parent + _UNSET + common


@lru_cache(maxsize=256)
def _claim(claim: int) -> bytes:
    return attributes_field(_TAG, {CLAIM: claim})


def _but(attributes: Attributes, name: str = "") -> bytes:
    """All attributes except `name`."""
    return attributes_field(_TAG, {each: value for each, value in attributes.items() if each != name})


class _Text:
    """Encodes an attribute whose values all differ, so it caches none."""

    __slots__ = ("_begins", "_most", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        key = encode_field(b"\x0a", name.encode())
        self._most = 0x7F - len(key) - 4  # in bytes, so that each length takes one byte
        self._begins = [
            b"%b%c%b\x12%c\x0a%c" % (_TAG, len(key) + 4 + size, key, size + 2, size) for size in range(self._most + 1)
        ]

    def __call__(self, value: str) -> bytes:
        data = value.encode("utf-8", "replace")
        size = len(data)
        if size > self._most:
            return attributes_field(_TAG, {self._name: value})
        return self._begins[size] + data


_run_id, _message_id, _workflow_id = _Text(RUN_ID), _Text(MESSAGE_ID), _Text(WORKFLOW_ID)

"""Ids of traces and spans, derived from what both a worker and the history of a run know: the spans that a worker makes
and those that are made from the history afterwards have the same ids."""

import re
from hashlib import blake2b
from typing import NamedTuple

TRACEPARENT = "traceparent"
"""Where the context of a run has the span that started it, in the form of the W3C."""
TRACESTATE = "tracestate"
"""Where the context says, in an entry of Kagzi's, that this span is the client's own, and which span it hangs on."""

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_START = re.compile(r"(?:^|,)\s*kagzi=([0-9a-f]{16})(?:,|$)")
_CONTINUED = re.compile(r"(?:^|,)\s*kagzi=continued-([0-9a-f]{32})-([0-9a-f]{16})(?:,|$)")
_USUAL = re.compile(
    rb'{"traceparent":"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-0([01])","tracestate":"kagzi=([0-9a-f]{16})"}'
)
_SAMPLED = 1
_PERSON = b"kagzi-trace"
_TRACE_BYTES = 16
_SPAN_BYTES = 8
_EMPTY = {size: blake2b(digest_size=size, person=_PERSON) for size in (_TRACE_BYTES, _SPAN_BYTES)}  # cheap to copy
NO_SPAN, FIRST_SPAN = bytes(_SPAN_BYTES), (1).to_bytes(_SPAN_BYTES, "big")

PART_ENTRIES = 1_000
"""Attempts and children of one claim that are in one trace; those that follow are in another."""
OWN_TRACE_SEQ = 2 * PART_ENTRIES
"""A run with so many records has a trace for each further claim: a step has two, of its begin and of its result."""


class SpanRef(NamedTuple):
    """A span somewhere."""

    trace_id: int
    span_id: int
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


def parse_traceparent(text: object) -> SpanRef | None:
    """None for what is not a `traceparent`: a run does not fail because of its trace."""
    match = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    ref = SpanRef(int(match[2], 16), int(match[3], 16), bool(int(match[4], 16) & _SAMPLED))
    return ref if ref.trace_id and ref.span_id else None


class UsualStart:
    """What a client has put, and nothing else, into the context of a run that it started. A short cut for what most
    runs of traced programs have: whether it is sampled is told at once, the rest when it is asked for."""

    __slots__ = ("_match", "sampled")

    def __init__(self, match: re.Match[bytes]) -> None:
        self._match = match
        self.sampled = match[3] == b"1"

    def read(self) -> tuple[SpanRef, int]:
        """Span and caller of the start."""
        trace, span, _, caller = self._match.groups()
        return SpanRef(int(trace, 16), int(span, 16), self.sampled), int(caller, 16)


def usual_start(context: bytes) -> UsualStart | None:
    """None for any other context."""
    match = _USUAL.fullmatch(context)
    return None if match is None else UsualStart(match)


def start_context(traceparent: str, tracestate: str) -> bytes:
    """The context of a run that consists of these, as `usual_start` reads it: as any writer of JSON writes it."""
    return f'{{"{TRACEPARENT}":"{traceparent}","{TRACESTATE}":"{tracestate}"}}'.encode()


def start_state(caller_span_id: int) -> str:
    """The `tracestate` of a start whose span the client makes; `caller_span_id`: what that hangs on, 0 for nothing."""
    return f"kagzi={caller_span_id:016x}"


def caller_of_start(tracestate: object) -> int | None:
    """What `start_state` was given; None if the span that started the run is not Kagzi's."""
    match = _START.search(tracestate) if isinstance(tracestate, str) else None
    return None if match is None else int(match[1], 16)


def continued_state(start: SpanRef) -> str:
    """The `tracestate` of a run that goes on instead of another; `start`: that of the first of them."""
    return f"kagzi=continued-{start.trace_id:032x}-{start.span_id:016x}"


def first_start(tracestate: object) -> SpanRef | None:
    """What `continued_state` was given; None for a run that was started by somebody."""
    match = _CONTINUED.search(tracestate) if isinstance(tracestate, str) else None
    return None if match is None else SpanRef(int(match[1], 16), int(match[2], 16))


def start_of(run_id: str) -> SpanRef:
    """The start of a run whose client has said nothing of a trace."""
    return SpanRef(_hash(_TRACE_BYTES, f"trace\n{run_id}"), _hash(_SPAN_BYTES, f"start\n{run_id}"))


def stretch_id(run_id: str, claim: int, part: int = 0) -> int:
    """The span of the work on a run from one claim until the worker lets go of it. `claim`: the counter of the lease,
    which is recorded with every step. `part`: of a claim in which more was done than a trace should hold."""
    return _hash(_SPAN_BYTES, f"run\n{run_id}\n{claim}\n{part}" if part else f"run\n{run_id}\n{claim}")


def attempt_id(run_id: str, step_id: str, attempt: int, claim: int) -> int:
    """The span of an attempt. An attempt that was lost does not count, so the next one has the same number: the claim
    tells them apart."""
    return AttemptIds(run_id, claim).of(step_id, attempt)


def hashed_attempt(step_id: str, attempt: int) -> bytes:
    """What is hashed of an attempt, after what those of its claim have in common."""
    return f"{attempt}\n{step_id}".encode()


class AttemptIds:
    """The spans of the attempts in one claim: what they have in common is hashed once. An id is the hash of that and of
    `hashed_attempt`; never NO_SPAN, but FIRST_SPAN instead."""

    __slots__ = ("common",)

    def __init__(self, run_id: str, claim: int) -> None:
        self.common = _EMPTY[_SPAN_BYTES].copy()
        self.common.update(f"step\n{run_id}\n{claim}\n".encode())

    def of(self, step_id: str, attempt: int) -> int:
        digest = self.common.copy()
        digest.update(hashed_attempt(step_id, attempt))
        return int.from_bytes(digest.digest(), "big") or 1


def stretch_of(start: SpanRef, run_id: str, claim: int, part: int = 0, *, own_traces_from: int = 0) -> SpanRef:
    """The span of a stretch, with its trace: that of the start, unless the claim is one of those that have a trace each
    (`own_traces_from`: the first of them, 0 for none), or the part is not the first."""
    span_id = stretch_id(run_id, claim, part)
    if is_in_trace_of_start(claim, part, own_traces_from):
        return SpanRef(start.trace_id, span_id, start.sampled)
    return SpanRef(_hash(_TRACE_BYTES, f"trace\n{run_id}\n{claim}\n{part}"), span_id, start.sampled)


def is_in_trace_of_start(claim: int, part: int, own_traces_from: int) -> bool:
    return not part and not 0 < own_traces_from <= claim


def stretch_before(claim: int, part: int) -> tuple[int, int] | None:
    """Claim and part of the stretch that a stretch links to. None: it is the first."""
    if part:
        return claim, part - 1
    return (claim - 1, 0) if claim > 1 else None


def _hash(size: int, text: str) -> int:
    """Never 0, which would be no id. Step ids come last in a text: they may hold anything."""
    digest = _EMPTY[size].copy()
    digest.update(text.encode())
    return int.from_bytes(digest.digest(), "big") or 1

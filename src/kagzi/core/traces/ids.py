"""Ids of traces and spans, derived from data that both a worker and the history of a run have, so that spans made by a
worker and spans made later from the history have the same ids."""

import re
from binascii import unhexlify
from hashlib import blake2b
from typing import NamedTuple

TRACEPARENT = "traceparent"
"""The key in a run's context of the span that started it, in W3C format."""
TRACESTATE = "tracestate"
"""The key in the context of an entry that marks this span as the client's own, and names its parent span."""

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
_NO_IDS = (NO_SPAN, bytes(_TRACE_BYTES))

PART_ENTRIES = 1_000
"""How many attempts and children of one claim are in one trace; later ones are in another."""
OWN_TRACE_SEQ = 2 * PART_ENTRIES
"""Once a run has this many records, each further claim has its own trace. A step has two: begin and result."""


class SpanRef(NamedTuple):
    """The ids of a span."""

    trace_id: int
    span_id: int
    sampled: bool = True

    def ids(self) -> tuple[bytes, bytes]:
        """The trace and the span."""
        return self.trace_id.to_bytes(_TRACE_BYTES, "big"), self.span_id.to_bytes(_SPAN_BYTES, "big")

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


def parse_traceparent(text: object) -> SpanRef | None:
    """None for an invalid `traceparent`: a run does not fail because of its trace."""
    match = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    ref = SpanRef(int(match[2], 16), int(match[3], 16), bool(int(match[4], 16) & _SAMPLED))
    return ref if ref.trace_id and ref.span_id else None


class UsualStart:
    """The context of a run that contains nothing but what the client wrote at the start. A shortcut for most runs of
    traced programs: whether the run is sampled is known at once, the rest is parsed on demand."""

    __slots__ = ("_match", "sampled")

    def __init__(self, match: re.Match[bytes]) -> None:
        self._match = match
        self.sampled = match[3] == b"1"

    def read(self) -> tuple[SpanRef, int]:
        """The span of the start and its caller."""
        trace, span, _, caller = self._match.groups()
        return SpanRef(int(trace, 16), int(span, 16), self.sampled), int(caller, 16)

    def ids(self) -> tuple[bytes, bytes]:
        """The trace and the span of the start."""
        trace, span, _, _ = self._match.groups()
        return unhexlify(trace), unhexlify(span)


def usual_start(context: bytes) -> UsualStart | None:
    """None for any other context."""
    match = _USUAL.fullmatch(context)
    return None if match is None else UsualStart(match)


def start_context(traceparent: str, tracestate: str) -> bytes:
    """The context of a run that consists only of these, as `usual_start` reads it: encoded as by any JSON writer."""
    return f'{{"{TRACEPARENT}":"{traceparent}","{TRACESTATE}":"{tracestate}"}}'.encode()


def start_state(caller_span_id: int) -> str:
    """The `tracestate` of a start whose span the client creates; `caller_span_id`: its parent span, 0 for none."""
    return f"kagzi={caller_span_id:016x}"


def caller_of_start(tracestate: object) -> int | None:
    """The argument of `start_state`; None if the span that started the run is not Kagzi's."""
    match = _START.search(tracestate) if isinstance(tracestate, str) else None
    return None if match is None else int(match[1], 16)


def continued_state(start: SpanRef) -> str:
    """The `tracestate` of a run that continues another; `start`: the start of the first run."""
    return f"kagzi=continued-{start.trace_id:032x}-{start.span_id:016x}"


def first_start(tracestate: object) -> SpanRef | None:
    """The argument of `continued_state`; None for a run that does not continue another."""
    match = _CONTINUED.search(tracestate) if isinstance(tracestate, str) else None
    return None if match is None else SpanRef(int(match[1], 16), int(match[2], 16))


def start_of(run_id: str) -> SpanRef:
    """The start of a run whose client gave no trace."""
    return SpanRef(_hash(_TRACE_BYTES, f"trace\n{run_id}"), _hash(_SPAN_BYTES, f"start\n{run_id}"))


def stretch_id(run_id: str, claim: int, part: int = 0) -> int:
    """The span of the work on a run from one claim until the worker releases it. `claim`: the counter of the lease,
    which is recorded with every step. `part`: its number if a claim is divided because its trace is large."""
    return int.from_bytes(stretch_bytes(run_id, claim, part), "big")


def stretch_bytes(run_id: str, claim: int, part: int = 0) -> bytes:
    """As `stretch_id`."""
    return _digest(_SPAN_BYTES, f"run\n{run_id}\n{claim}\n{part}" if part else f"run\n{run_id}\n{claim}")


def attempt_id(run_id: str, step_id: str, attempt: int, claim: int) -> int:
    """The span of an attempt. A lost attempt does not count, so the next one has the same number: the claim
    distinguishes them."""
    return AttemptIds(run_id, claim).of(step_id, attempt)


def hashed_attempt(step_id: str, attempt: int) -> bytes:
    """The part of the hashed text that identifies an attempt within its claim."""
    return f"{attempt}\n{step_id}".encode()


class AttemptIds:
    """Span ids of the attempts in one claim: the common prefix is hashed once. An id is the hash of the prefix and
    `hashed_attempt`; NO_SPAN is replaced with FIRST_SPAN."""

    __slots__ = ("common",)

    def __init__(self, run_id: str, claim: int) -> None:
        self.common = _EMPTY[_SPAN_BYTES].copy()
        self.common.update(f"step\n{run_id}\n{claim}\n".encode())

    def of(self, step_id: str, attempt: int) -> int:
        digest = self.common.copy()
        digest.update(hashed_attempt(step_id, attempt))
        return int.from_bytes(digest.digest(), "big") or 1


def stretch_of(start: SpanRef, run_id: str, claim: int, part: int = 0, *, own_traces_from: int = 0) -> SpanRef:
    """The span of a stretch, with its trace: that of the start, unless the claim has its own trace (`own_traces_from`:
    the first such claim, 0 for none), or the part is not the first."""
    span_id = stretch_id(run_id, claim, part)
    if is_in_trace_of_start(claim, part, own_traces_from):
        return SpanRef(start.trace_id, span_id, start.sampled)
    return SpanRef(_hash(_TRACE_BYTES, f"trace\n{run_id}\n{claim}\n{part}"), span_id, start.sampled)


def is_in_trace_of_start(claim: int, part: int, own_traces_from: int) -> bool:
    return not part and not 0 < own_traces_from <= claim


def stretch_before(claim: int, part: int) -> tuple[int, int] | None:
    """Claim and part of the stretch that a stretch links to. None: it is the first stretch."""
    if part:
        return claim, part - 1
    return (claim - 1, 0) if claim > 1 else None


def _hash(size: int, text: str) -> int:
    return int.from_bytes(_digest(size, text), "big")


def _digest(size: int, text: str) -> bytes:
    """Never zeros, which are not a valid id. Step ids come last in a text, because they may contain anything."""
    digest = _EMPTY[size].copy()
    digest.update(text.encode())
    made = digest.digest()
    return (1).to_bytes(size, "big") if made in _NO_IDS else made

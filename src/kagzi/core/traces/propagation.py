"""A trace that comes from outside: the headers of the W3C, and the context of a run that is to be part of it."""

from collections.abc import Mapping

import msgspec

from ..records import Payload
from .ids import TRACEPARENT, TRACESTATE, SpanRef, parse_traceparent

_OWN = "kagzi="
_STATE_BYTES = 512  # what everybody has to hand on
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def sender_in(headers: Mapping[str, str]) -> SpanRef | None:
    """The span that a request was made in. `headers`: names in lower case."""
    return parse_traceparent(headers.get(TRACEPARENT, "").strip())


def context_from(headers: Mapping[str, str], context: Payload | None) -> Payload | None:
    """The context of a run that a request starts: part of the request's trace, unless the context names one, is encoded
    or is not an object. What else it holds stays to the byte."""
    sender = sender_in(headers)
    if sender is None or (context is not None and context.metadata):
        return context
    try:
        values = _decode(context.data) if context is not None and context.data not in (b"", b"null") else {}
    except msgspec.DecodeError:
        return context
    if TRACEPARENT in values:
        return context
    named = {TRACEPARENT: sender.traceparent}
    if state := _state(headers.get(TRACESTATE, "")):
        named[TRACESTATE] = state
    added: dict[str, object] = {**values, **named}
    return Payload(msgspec.json.encode(added))


def trace_of(context: Payload | None) -> str | None:
    """The trace that a run is part of, as its context says; None if it does not, or is encoded."""
    if context is None or context.metadata:
        return None
    try:
        ref = parse_traceparent(msgspec.json.decode(_decode(context.data).get(TRACEPARENT, b"null")))
    except msgspec.DecodeError:
        return None
    return None if ref is None else f"{ref.trace_id:032x}"


def metadata_from(headers: Mapping[str, str]) -> dict[str, str] | None:
    """What a signal says of its sender; None for nothing."""
    sender = sender_in(headers)
    return None if sender is None else {TRACEPARENT: sender.traceparent}


def _state(header: str) -> str:
    """Without what only Kagzi says."""
    entries = [entry.strip() for entry in header.split(",")]
    kept = ",".join(entry for entry in entries if entry and not entry.startswith(_OWN))
    return kept if len(kept) <= _STATE_BYTES else ""

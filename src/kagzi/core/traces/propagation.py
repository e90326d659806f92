"""Traces from outside: the W3C headers, and the context of a run that joins the trace."""

from collections.abc import Mapping

import msgspec

from ..records import Payload
from .ids import TRACEPARENT, TRACESTATE, SpanRef, parse_traceparent

_OWN = "kagzi="
_STATE_BYTES = 512  # the length that every system must propagate
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def sender_in(headers: Mapping[str, str]) -> SpanRef | None:
    """The span that sent a request. `headers`: names in lower case."""
    return parse_traceparent(headers.get(TRACEPARENT, "").strip())


def context_from(headers: Mapping[str, str], context: Payload | None) -> Payload | None:
    """The context of a run that a request starts: it joins the request's trace, unless the context names a trace, is
    encoded or is not an object. The rest of the context stays unchanged, byte for byte."""
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
    """The trace of a run, from its context; None if it has none, or is encoded."""
    if context is None or context.metadata:
        return None
    try:
        ref = parse_traceparent(msgspec.json.decode(_decode(context.data).get(TRACEPARENT, b"null")))
    except msgspec.DecodeError:
        return None
    return None if ref is None else f"{ref.trace_id:032x}"


def metadata_from(headers: Mapping[str, str]) -> dict[str, str] | None:
    """The metadata of a signal that names the span of its sender; None if there is none."""
    sender = sender_in(headers)
    return None if sender is None else {TRACEPARENT: sender.traceparent}


def _state(header: str) -> str:
    """The header without Kagzi's own entries."""
    entries = [entry.strip() for entry in header.split(",")]
    kept = ",".join(entry for entry in entries if entry and not entry.startswith(_OWN))
    return kept if len(kept) <= _STATE_BYTES else ""

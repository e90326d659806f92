"""Encodes spans as OTLP messages, byte by byte.

OpenTelemetry's encoder creates a protobuf message for every value and hashes the whole resource for every span, which
costs more than recording the span. Fields and numbers are those of
opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import pack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link

HAS_IS_REMOTE, IS_REMOTE = 0x100, 0x200
_INT64 = 1 << 64
_ONE_BYTE = 0x80
SPANS = b"\x12"


def encode_spans(spans: "Iterable[ReadableSpan]") -> bytes:
    """An ExportTraceServiceRequest."""
    groups: dict[tuple[int, int], tuple[Resource, InstrumentationScope | None, list[bytes]]] = {}
    for span in spans:
        scope = span.instrumentation_scope
        group = groups.setdefault((id(span.resource), id(scope)), (span.resource, scope, []))
        group[2].append(encode_span(span))
    return b"".join(encode_group(*group) for group in groups.values())


def encode_span(span: "ReadableSpan") -> bytes:
    """The span as an encoded field of the spans of a scope."""
    return encode_field(SPANS, _span(span))


def encode_group(resource: "Resource", scope: "InstrumentationScope | None", spans: Sequence[bytes]) -> bytes:
    """An ExportTraceServiceRequest with these spans. Several of them, concatenated, are also one request. The spans are
    copied once."""
    described = b"" if scope is None else encode_field(b"\x0a", _scope(scope))
    schema = b"" if scope is None else _text(b"\x1a", scope.schema_url)
    size = len(described) + sum(map(len, spans)) + len(schema)
    begin = encode_field(b"\x0a", attributes_field(b"\x0a", resource.attributes)) + b"\x12" + encode_varint(size)
    end = schema + _text(b"\x1a", resource.schema_url)
    whole = len(begin) + size + len(end) - len(schema)
    return b"".join((b"\x0a" + encode_varint(whole), begin, described, *spans, end))


def _scope(scope: "InstrumentationScope") -> bytes:
    return _text(b"\x0a", scope.name) + _text(b"\x12", scope.version) + attributes_field(b"\x1a", scope.attributes)


def _span(span: "ReadableSpan") -> bytes:
    context, parent, status = span.get_span_context(), span.parent, span.status
    assert context is not None
    flags = HAS_IS_REMOTE | (IS_REMOTE if parent is not None and parent.is_remote else 0)
    parts = [
        b"\x0a\x10" + context.trace_id.to_bytes(16, "big") + b"\x12\x08" + context.span_id.to_bytes(8, "big"),
        name_field(span.name),
        b"\x30%c" % (span.kind.value + 1),
        pack("<cQcQ", b"\x39", span.start_time or 0, b"\x41", span.end_time or 0),
        attributes_field(b"\x4a", span.attributes),
        pack("<HI", 0x0185, flags),  # field 16, whose tag has two bytes
    ]
    if parent is not None:
        parts.append(b"\x22\x08" + parent.span_id.to_bytes(8, "big"))
    if context.trace_state:
        parts.append(_text(b"\x1a", context.trace_state.to_header()))
    if events := span.events:
        parts += (encode_field(b"\x5a", _event(event)) for event in events)
    if links := span.links:
        parts += (encode_field(b"\x6a", _link(link)) for link in links)
    if status.is_unset:
        parts.append(b"\x7a\x00")
    else:
        parts.append(
            encode_field(b"\x7a", _text(b"\x12", status.description) + _number(b"\x18", status.status_code.value))
        )
    parts.append(_number(b"\x50", span.dropped_attributes))
    parts.append(_number(b"\x60", span.dropped_events))
    parts.append(_number(b"\x70", span.dropped_links))
    return b"".join(parts)


@lru_cache(maxsize=1_024)
def name_field(name: str) -> bytes:
    return _text(b"\x2a", name)


def _event(event: "Event") -> bytes:
    return b"".join(
        (
            pack("<cQ", b"\x09", event.timestamp),
            _text(b"\x12", event.name),
            attributes_field(b"\x1a", event.attributes),
            _number(b"\x20", event.dropped_attributes),
        )
    )


def _link(link: "Link") -> bytes:
    context = link.context
    flags = HAS_IS_REMOTE | (IS_REMOTE if context.is_remote else 0)
    return b"".join(
        (
            b"\x0a\x10" + context.trace_id.to_bytes(16, "big") + b"\x12\x08" + context.span_id.to_bytes(8, "big"),
            attributes_field(b"\x22", link.attributes),
            _number(b"\x28", link.dropped_attributes),
            pack("<cI", b"\x35", flags),
        )
    )


# --- values -----------------------------------------------------------------------------------------------------------


def attributes_field(tag: bytes, attributes: Mapping[str, Any] | None) -> bytes:
    """One encoded field for each attribute."""
    if not attributes:
        return b""
    return b"".join(
        _pair(tag, key, value) if type(value) in (str, int, bool, float) else _pair_of(tag, key, value)
        for key, value in attributes.items()
    )


def _pair_of(tag: bytes, key: str, value: Any) -> bytes:
    return encode_field(tag, _text(b"\x0a", key) + encode_field(b"\x12", _value(value)))


_pair = lru_cache(maxsize=4_096, typed=True)(_pair_of)
"""Cached, because most pairs repeat: names of runs, workers and steps."""


def _value(value: Any) -> bytes:
    """A value of an unsupported type is encoded as its text: better than no span."""
    if value is None:
        return b""
    if isinstance(value, str):
        return encode_field(b"\x0a", value.encode("utf-8", "replace"))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + encode_varint(value % _INT64)
    if isinstance(value, float):
        return pack("<cd", b"\x21", value)
    if isinstance(value, bytes):
        return encode_field(b"\x3a", value)
    if isinstance(value, Sequence):
        return _list_value(value)  # pyright: ignore[reportUnknownArgumentType]  isinstance does not narrow its members
    if isinstance(value, Mapping):
        return _pairs_value(value)  # pyright: ignore[reportUnknownArgumentType]  isinstance does not narrow its members
    return _value(str(value))


def _list_value(values: Sequence[Any]) -> bytes:
    return encode_field(b"\x2a", b"".join(encode_field(b"\x0a", _value(each)) for each in values))


def _pairs_value(pairs: Mapping[Any, Any]) -> bytes:
    return encode_field(b"\x32", b"".join(_pair_of(b"\x0a", str(key), each) for key, each in pairs.items()))


def _text(tag: bytes, text: str | None) -> bytes:
    return encode_field(tag, text.encode("utf-8", "replace")) if text else b""


def _number(tag: bytes, number: int) -> bytes:
    return tag + encode_varint(number) if number else b""


def encode_field(tag: bytes, data: bytes) -> bytes:
    size = len(data)
    return b"%b%c%b" % (tag, size, data) if size < _ONE_BYTE else tag + encode_varint(size) + data


def encode_varint(number: int) -> bytes:
    made = bytearray()
    while number >= _ONE_BYTE:
        made.append(number & (_ONE_BYTE - 1) | _ONE_BYTE)
        number >>= 7
    made.append(number)
    return bytes(made)

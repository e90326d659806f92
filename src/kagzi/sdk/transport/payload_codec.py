"""The user's codec, applied to messages: all data from user code is encoded before it leaves this process, and decoded
when it arrives.

It is applied to whole messages, by their descriptors, and not where values are written, so new requests with payloads
and new fields with errors are covered. Encoded values are not encoded again. A value that cannot be decoded stays as it
is, with the reason: only code that needs it gets an error (`Undecodable`).
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import quote, unquote

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from ...core import limits
from ...core.error_details import OWN_CODE
from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.public import exported
from ...core.records import ENCODING, is_encoded
from ...v1 import common_pb2 as common
from .channel import Channel
from .payload_kinds import ANY, EFFECT, TEXT, TEXTS, decoded, encoded, is_strict, kind_of, kinds_in

M = TypeVar("M", bound=Message)

UNDECODABLE = "undecodable"
"""Key in the metadata of a payload that this side could not decode: the reason."""
CLEAR = "none"
"""The encoding of an error of Kagzi itself, which contains no data from user code."""

_PAYLOAD = "kagzi.v1.Payload"
_ERROR = "kagzi.v1.ErrorDetail"
# Data from user code besides payloads and errors, by message and field, with the server's limit.
_TEXTS = {"kagzi.v1.SetStatusOperation": {"text": limits.STATUS_TEXT_BYTES}}
# Where encoded texts come back. Only these are decoded: in a name, an id or a label, somebody without the key may have
# put what others encoded, and code that passes it on would show it to the server.
_WHOLE_TEXTS = {
    "kagzi.v1.SetStatusOperation": ("text",),
    "kagzi.v1.Workflow": ("status_text",),
    "kagzi.v1.WatchResponse": ("status_text",),
}
# The same, where servers put errors into sentences, for people.
_SENTENCES = {
    _ERROR: ("message", "traceback", "metadata"),
    "kagzi.v1.TimelineStep": ("error",),
    "kagzi.v1.ExplainWorkflowResponse": ("sentence", "reason", "facts", "remedy"),
    "kagzi.v1.BulkOperation": ("last_error",),
}
# Servers and programs read these keys of an error's metadata; user code does not write them.
_CLEAR_METADATA = frozenset(
    {OWN_CODE, ENCODING, "step_id", "seq", "expected", "limit", "maximum", "size", "reason", "grpc_status", "down"}
)
_BEGINNING = "[encoded "
_ELLIPSIS = "…"
_SIGNS = (ENCODING.encode(), _BEGINNING.encode())


@exported
class Codec(Protocol):
    """Encodes data from user code when it leaves this process and decodes it when it returns, for example to encrypt
    it: `Worker(codec=)`, `Kagzi.connect(codec=)`. Both methods are called in the event loop."""

    def encode(self, data: bytes) -> tuple[bytes, Mapping[str, str]]:
        """The encoded `data`, and what `decode` needs: `"encoding"`, and keys `"encoding-..."`, in clear."""
        ...

    def decode(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
        """The original of `data`, which was encoded with this `metadata`. If that is not possible, raises an exception
        whose text names the remedy."""
        ...


class Undecodable(PreconditionFailed):
    """A payload that this side cannot decode."""


def refuse_encoded(metadata: Mapping[str, str] | None, what: str) -> None:
    """Raises Undecodable for a payload that is still encoded."""
    if metadata and is_encoded(metadata):
        why = metadata.get(UNDECODABLE) or (
            f"it is encoded as {metadata[ENCODING]!r}, and there is no codec here. "
            "Give the one that it was encoded with: Kagzi.connect(codec=...), Worker(codec=...)"
        )
        raise Undecodable(f"{what} cannot be decoded: {why.rstrip('.')}.")


class MessageCodec:
    """Encodes and decodes messages in place. Without a codec nothing is encoded, and encoded texts are shown as
    such."""

    def __init__(self, codec: Codec | None) -> None:
        self.codec = codec

    # --- out ----------------------------------------------------------------------------------------------------------

    def encode(self, message: Message) -> None:
        """Encoded values are not encoded again. Raises the errors of the codec."""
        if self.codec is not None:
            self._encode(self.codec, message)

    def _encode(self, codec: Codec, message: Message, kind: str = EFFECT) -> None:
        """`kind`: of a payload."""
        name = message.DESCRIPTOR.full_name
        if name == _PAYLOAD:
            _encode_payload(codec, cast("common.Payload", message), kind)
            return
        if name == _ERROR and not _encode_error(codec, cast("common.ErrorDetail", message)):
            return
        for text, limit in _TEXTS.get(name, {}).items():
            setattr(message, text, _encoded_text(codec, getattr(message, text), limit))
        for field in _leading_on(cast("Descriptor", message.DESCRIPTOR)):
            for each in _messages_in(message, field):
                self._encode(codec, each, kind_of(name, field.name))

    # --- in -----------------------------------------------------------------------------------------------------------

    def decode(self, message: Message) -> None:
        """Never raises: values that cannot be decoded stay as they are."""
        self._decode(message, ANY)

    def _decode(self, message: Message, kinds: frozenset[str]) -> None:
        """`kinds`: of a payload, as which it may have been encoded."""
        name = message.DESCRIPTOR.full_name
        if name == _PAYLOAD:
            self._decode_payload(cast("common.Payload", message), kinds)
            return
        for text in _WHOLE_TEXTS.get(name, ()):
            if whole := _part().fullmatch(getattr(message, text)):
                setattr(message, text, self._decoded_part(whole))
        for text in _SENTENCES.get(name, ()):
            self._decode_sentence(message, text)
        for field in _leading_on(cast("Descriptor", message.DESCRIPTOR)):
            for each in _messages_in(message, field):
                self._decode(each, kinds_in(name, field.name))

    def _decode_sentence(self, message: Message, field: str) -> None:
        value = getattr(message, field)
        if not isinstance(value, str):
            for key in [key for key, text in value.items() if _BEGINNING in text]:
                value[key] = self._decoded_text(value[key])
        elif _BEGINNING in value:
            setattr(message, field, self._decoded_text(value))

    def decoding(self, read: "Callable[[bytes], M]") -> "Callable[[bytes], M]":
        """A reader that also decodes what `read` returns."""

        def decoded(data: bytes) -> M:
            message = read(data)
            if any(mark in data for mark in _SIGNS) or is_strict(self.codec):
                self.decode(message)
            return message

        return decoded

    def _decode_payload(self, payload: common.Payload, kinds: frozenset[str]) -> None:
        metadata, codec = payload.metadata, self.codec
        if codec is None or not payload.data or not (is_encoded(metadata) or is_strict(codec)):
            return
        try:
            payload.data = decoded(codec, payload.data, dict(metadata), kinds)
        except Exception as error:  # noqa: BLE001  the codec is user code
            metadata.setdefault(ENCODING, CLEAR)
            metadata[UNDECODABLE] = str(error) or type(error).__name__
            return
        for key in [key for key in metadata if key.startswith(ENCODING)]:
            del metadata[key]

    def _decoded_text(self, text: str) -> str:
        return _part().sub(self._decoded_part, text)

    def _decoded_part(self, part: "re.Match[str]") -> str:
        data = base64.urlsafe_b64decode(part["data"])
        pairs = (pair.partition("=") for pair in part["metadata"].split())
        metadata = {key: unquote(value) for key, _, value in pairs}
        if self.codec is None:
            shown = ", ".join(metadata.values())
            return f"[encoded: {shown}, {len(data)} bytes]"
        try:
            return decoded(self.codec, data, metadata, TEXTS).decode("utf-8", "replace")
        except Exception:  # noqa: BLE001  the codec is user code
            return part[0]


def message_codec(codec: Codec | MessageCodec | None) -> MessageCodec | None:
    """Raises InvalidArgument for a value that is not a codec."""
    if codec is None or isinstance(codec, MessageCodec):
        return codec
    if not callable(getattr(codec, "encode", None)) or not callable(getattr(codec, "decode", None)):
        raise InvalidArgument(
            f"codec={codec!r} has no encode and decode. Give a kagzi.Codec, such as kagzi.crypto.AesGcm(keys=...).",
            field="codec",
        )
    return MessageCodec(codec)


class DecodingChannel:
    """A channel that decodes its responses."""

    def __init__(self, channel: Channel, codec: MessageCodec) -> None:
        self.unary_unary = _decoding(channel.unary_unary, codec)
        self.unary_stream = _decoding(channel.unary_stream, codec)
        self.stream_unary = _decoding(channel.stream_unary, codec)
        self.stream_stream = _decoding(channel.stream_stream, codec)
        self.close = channel.close


def _decoding(method: Callable[..., Any], codec: MessageCodec) -> Callable[..., Any]:
    def make(path: str, *, response_deserializer: "Callable[[bytes], Any]", **options: Any) -> Callable[..., Any]:
        call: Callable[..., Any] = method(path, response_deserializer=codec.decoding(response_deserializer), **options)
        return call

    return make


# --- the parts of a message -------------------------------------------------------------------------------------------

_leading: dict[str, tuple[FieldDescriptor, ...]] = {}


def _leading_on(descriptor: Descriptor) -> tuple[FieldDescriptor, ...]:
    """The fields that may contain encoded data."""
    known = _leading.get(descriptor.full_name)
    if known is None:
        known = _leading[descriptor.full_name] = tuple(
            field for field in descriptor.fields if _has_clear_text(field.message_type, set())
        )
    return known


def _has_clear_text(descriptor: Descriptor | None, seen: set[str]) -> bool:
    """`descriptor`: None for a field that is not a message. The entry of a map has its value in a field."""
    if descriptor is None or descriptor.full_name in seen:
        return False
    name = descriptor.full_name
    seen.add(name)
    if name in (_PAYLOAD, _ERROR) or name in _TEXTS:
        return True
    return any(_has_clear_text(field.message_type, seen) for field in descriptor.fields)


def _map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """None if it is not a map."""
    entry = field.message_type
    return entry.fields_by_name["value"] if entry is not None and entry.GetOptions().map_entry else None


def _messages_in(message: Message, field: FieldDescriptor) -> Iterable[Message]:
    value = getattr(message, field.name)
    if _map_value(field) is not None:
        return [each for each in value.values() if isinstance(each, Message)]
    if field.is_repeated:
        return cast("Iterable[Message]", value)
    return (value,) if message.HasField(field.name) else ()


@lru_cache(maxsize=1)
def _part() -> "re.Pattern[str]":
    """Matches the encoded part of a text. Compiled on first use: most programs have no codec."""
    return re.compile(r"\[encoded (?P<data>[\w-]+={0,2})(?P<metadata>(?: [\w.-]+=[^\s\]]*)+)\]")


# --- encoding ---------------------------------------------------------------------------------------------------------


def _encode_payload(codec: Codec, payload: common.Payload, kind: str) -> None:
    if not payload.data or is_encoded(payload.metadata):
        return
    data, metadata = _checked(*encoded(codec, payload.data, kind))
    payload.data = data
    payload.metadata.update(metadata)


def _encode_error(codec: Codec, error: common.ErrorDetail) -> bool:
    """Returns whether it may contain more to encode."""
    if error.metadata.get(ENCODING) == CLEAR:
        return False
    error.message = _encoded_text(codec, error.message, limits.ERROR_MESSAGE_BYTES)
    error.traceback = _encoded_text(codec, error.traceback, limits.ERROR_TRACEBACK_BYTES, keep_end=True)
    for key in [key for key in error.metadata if key not in _CLEAR_METADATA]:
        error.metadata[key] = _encoded_text(codec, error.metadata[key], limits.ERROR_MESSAGE_BYTES)
    return True


def _encoded_text(codec: Codec, text: str, limit: int, *, keep_end: bool = False) -> str:
    """The text as an encoded part that can be found again: servers put errors into sentences. Shortened first, because
    the result could not be decoded if the server truncated it."""
    if not text or _part().fullmatch(text):
        return text
    clear = text.encode("utf-8", "replace")
    part = _encoded_part(codec, clear)
    if len(part) > limit:
        most = max(len(clear) - (len(part) - limit) * 3 // 4 - len(_ELLIPSIS.encode()) - 4, 0)
        short_data = clear[len(clear) - most :] if keep_end else clear[:most]
        short = short_data.decode("utf-8", "ignore")
        part = _encoded_part(codec, (f"{_ELLIPSIS}{short}" if keep_end else f"{short}{_ELLIPSIS}").encode())
    return part


def _encoded_part(codec: Codec, clear: bytes) -> str:
    data, metadata = _checked(*encoded(codec, clear, TEXT))
    shown = "".join(f" {key}={quote(value, safe='')}" for key, value in metadata.items())
    return f"{_BEGINNING}{base64.urlsafe_b64encode(data).decode()}{shown}]"


def _checked(data: bytes, metadata: Mapping[str, str]) -> tuple[bytes, Mapping[str, str]]:
    if not metadata.get(ENCODING) or not all(key.startswith(ENCODING) for key in metadata):
        raise InvalidArgument(
            f"the codec gave the metadata {dict(metadata)!r}. It must name its encoding under {ENCODING!r}, and all "
            f"keys must begin with {ENCODING!r}.",
            field="codec",
        )
    return data, metadata

"""User values in requests and responses: JSON unchanged, to the byte; anything else in an envelope.

The envelope is `{"$encoding": "aes-gcm", "$bytes": "<base64>", "$metadata": {"encoding-key": "2026"}}` in both
directions: a value from a response can be sent back unchanged (ADR 0071).
"""

from collections.abc import Mapping

import msgspec

from ...core.errors import InvalidArgument
from ...core.records import ENCODING, Payload, is_encoded

_JSON = "json"
_UNKNOWN = "unknown"
_NULL = msgspec.Raw(b"null")
_MARK = b"$encoding"


class Envelope(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"encoding": "$encoding", "data": "$bytes", "metadata": "$metadata"},
):
    """`encoding`: from the metadata; "json": the metadata have none, and the data are JSON; "unknown": they have none,
    and the data are not JSON. `data`: base64. `metadata`: without the encoding."""

    encoding: str
    data: bytes
    metadata: Mapping[str, str] = {}


_raw = msgspec.json.Decoder(msgspec.Raw)
_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])
_envelope = msgspec.json.Decoder(Envelope)


def is_json(data: bytes) -> bool:
    """Validates without building objects."""
    try:
        _raw.decode(data)
        data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def payload_view(payload: Payload | None) -> msgspec.Raw:
    """JSON as it is stored, to the byte, unless it looks like an envelope; anything else in an envelope."""
    if payload is None or not payload.data:
        return _NULL
    metadata = payload.metadata or {}
    if is_encoded(metadata) or not is_json(payload.data):
        encoding = metadata.get(ENCODING) or _UNKNOWN
        rest = {key: value for key, value in metadata.items() if key != ENCODING}
    elif not _is_envelope(payload.data):
        return msgspec.Raw(payload.data)
    else:
        encoding, rest = _JSON, {}
    return msgspec.Raw(msgspec.json.encode(Envelope(encoding=encoding, data=payload.data, metadata=rest)))


def payload_of(value: msgspec.Raw | msgspec.UnsetType, field: str) -> Payload | None:
    """The payload of a request value, kept to the byte. None: no value. Raises InvalidArgument."""
    if isinstance(value, msgspec.UnsetType):
        return None
    data = bytes(value)
    return _opened(data, field) if _is_envelope(data) else Payload(data)


def _is_envelope(data: bytes) -> bool:
    """Any object with this key counts as an envelope."""
    if _MARK not in data:
        return False
    try:
        return _MARK.decode() in _keys.decode(data)
    except msgspec.DecodeError:
        return False


def _opened(data: bytes, field: str) -> Payload:
    try:
        envelope = _envelope.decode(data)
    except msgspec.DecodeError as error:
        raise InvalidArgument(
            f"{field} has the key $encoding, but is not an encoded value: {error}. Send "
            '{"$encoding": "aes-gcm", "$bytes": "<base64>"}, with "$metadata" if the encoding needs it. To send JSON '
            'that has this key itself, send its bytes with "$encoding": "json".',
            field=field,
        ) from None
    if envelope.encoding != _JSON:
        named = {} if envelope.encoding == _UNKNOWN else {ENCODING: envelope.encoding}
        return Payload(envelope.data, {**named, **envelope.metadata} or None)
    if envelope.metadata or not is_json(envelope.data):
        raise InvalidArgument(
            f'{field} has "$encoding": "json", so its $bytes must be JSON in UTF-8, and it has no $metadata. Name the '
            "encoding that it has.",
            field=field,
        )
    return Payload(envelope.data)

"""Recorded values, decoded for people: plain JSON."""

from typing import Any, overload

from ...core.error_details import ErrorDetail
from ...core.records import Payload
from ...sdk.transport.payload_codec import MessageCodec
from ...sdk.workflow.codec import ANY, read_payload
from ...wire.common import read_error, write_error, write_payload
from ...wire.common import read_payload as read_message


def decoded_payload(codec: MessageCodec | None, payload: Payload) -> Payload:
    """What cannot be decoded stays."""
    if not payload.metadata or codec is None:
        return payload
    message = write_payload(payload)
    codec.decode(message)
    return read_message(message)


def plain_value(codec: MessageCodec | None, payload: Payload, what: str) -> Any:
    """Raises PreconditionFailed for what cannot be decoded, InvalidArgument for what is not JSON."""
    payload = decoded_payload(codec, payload)
    return read_payload(ANY, Payload(payload.data or b"null", payload.metadata), what=what)


@overload
def decoded_error(codec: MessageCodec | None, error: ErrorDetail) -> ErrorDetail: ...
@overload
def decoded_error(codec: MessageCodec | None, error: None) -> None: ...
@overload
def decoded_error(codec: MessageCodec | None, error: ErrorDetail | None) -> ErrorDetail | None: ...
def decoded_error(codec: MessageCodec | None, error: ErrorDetail | None) -> ErrorDetail | None:
    """With the texts that user code has said as they were; what cannot be decoded stays."""
    if error is None or codec is None:
        return error
    message = write_error(error)
    codec.decode(message)
    return read_error(message)

"""Decodes recorded values to plain JSON."""

from typing import Any, overload

from ...core.error_details import ErrorDetail
from ...core.records import Payload
from ...sdk.transport.payload_codec import MessageCodec
from ...sdk.workflow.codec import ANY, read_payload
from ...wire.common import read_error, write_error, write_payload
from ...wire.common import read_payload as read_message


def decoded_payload(codec: MessageCodec | None, payload: Payload) -> Payload:
    """A payload that cannot be decoded is returned unchanged."""
    if not payload.metadata or codec is None:
        return payload
    message = write_payload(payload)
    codec.decode(message)
    return read_message(message)


def plain_value(codec: MessageCodec | None, payload: Payload, what: str) -> Any:
    """Raises PreconditionFailed if the payload cannot be decoded, InvalidArgument if it is not JSON."""
    payload = decoded_payload(codec, payload)
    return read_payload(ANY, Payload(payload.data or b"null", payload.metadata), what=what)


@overload
def decoded_error(codec: MessageCodec | None, error: ErrorDetail) -> ErrorDetail: ...
@overload
def decoded_error(codec: MessageCodec | None, error: None) -> None: ...
@overload
def decoded_error(codec: MessageCodec | None, error: ErrorDetail | None) -> ErrorDetail | None: ...
def decoded_error(codec: MessageCodec | None, error: ErrorDetail | None) -> ErrorDetail | None:
    """The error with the texts of user code decoded; a text that cannot be decoded stays as it is."""
    if error is None or codec is None:
        return error
    message = write_error(error)
    codec.decode(message)
    return read_error(message)

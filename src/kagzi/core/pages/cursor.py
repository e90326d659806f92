"""Page tokens: where a list continues. Opaque to callers, bound to the namespace and the filters of the list."""

import base64
import binascii
import hashlib
from typing import Literal, TypeAlias

import msgspec

from ..errors import InvalidArgument
from ..times import Timestamp

Direction: TypeAlias = Literal["next", "prev"]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The last row seen: its time in microseconds, and its id to distinguish rows of the same microsecond."""

    at: Timestamp
    id: str
    direction: Direction = "next"


class _Token(msgspec.Struct, frozen=True, array_like=True):
    cursor: Cursor
    bound_to: str


_decoder = msgspec.json.Decoder(_Token)
_LATEST: Timestamp = 2**63 - 1  # the largest value the stores can hold


def encode_cursor(cursor: Cursor, *, bound_to: str) -> str:
    """`bound_to` is everything that must not change from page to page: namespace and filters, as text."""
    token = msgspec.json.encode(_Token(cursor, _digest(cursor, bound_to)))
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def decode_cursor(token: str, *, bound_to: str) -> Cursor:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        decoded = _decoder.decode(raw)
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise _refused() from error
    # It must encode to the same text again: base64 ignores some changes; the digest detects another list or position.
    cursor = decoded.cursor
    if encode_cursor(cursor, bound_to=bound_to) != token or not 0 <= cursor.at <= _LATEST:
        raise _refused()
    return cursor


def _digest(cursor: Cursor, bound_to: str) -> str:
    text = msgspec.json.encode(cursor) + bound_to.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _refused() -> InvalidArgument:
    return InvalidArgument(
        "page_token does not belong to this list. Use the token of the previous response, with the same namespace and "
        "filters.",
        field="page_token",
    )

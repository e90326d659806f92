"""Checks of names, texts, payloads and similar values, for servers and for clients that send their requests later.
Every refusal names the field, the limit and the remedy."""

import math
import unicodedata
from collections.abc import Mapping

from .. import limits
from ..errors import InvalidArgument, limit_reached
from ..records import Payload
from ..retry.policy import UNLIMITED, RetryPolicy

_INT32_END = 1 << 31
_ASCII_CHARACTERS = 128  # shorter names may take the fast check


def name(value: str, field: str) -> None:
    """Checks a name or id: 1..256 bytes of text without control characters."""
    if 0 < len(value) <= _ASCII_CHARACTERS and value.isascii() and value.isprintable():
        return
    if not value:
        raise InvalidArgument(f"{field} is empty. Give it a name.", field=field)
    text(value, field, limits.NAME_BYTES)


def optional_name(value: str, field: str) -> None:
    if value:
        name(value, field)


def over_limit(field: str, size: str, limit: str, maximum: int, remedy: str) -> InvalidArgument:
    return InvalidArgument(
        f"{field} has {size}; the limit is {maximum}. {remedy}", field=field, metadata=limit_reached(limit, maximum)
    )


def text(value: str, field: str, limit_bytes: int) -> None:
    """Checks text: no control characters, no lone surrogates; may be empty. Its size is checked first, since looking
    at each character takes long."""
    size = len(value) if value.isascii() else len(value.encode(errors="replace"))
    if size > limit_bytes:
        raise over_limit(field, f"{size} bytes", "text_bytes", limit_bytes, "Shorten it.")
    if value.isascii() and value.isprintable():
        return
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidArgument(
                f"{field} contains the control character U+{ord(character):04X}. Remove it.", field=field
            )


def lines(value: str, field: str, limit_bytes: int) -> None:
    """Checks text that may have line breaks and tabs."""
    text(value.replace("\n", " ").replace("\t", " "), field, limit_bytes)


def payload(value: Payload | None, field: str, limit_bytes: int) -> None:
    if value is None:
        return
    if len(value.data) > limit_bytes:
        size = f"{len(value.data)} bytes"
        raise over_limit(field, size, "payload_bytes", limit_bytes, "Store it elsewhere and pass a reference.")
    if value.metadata:
        entries(value.metadata, f"{field}.metadata", limits.METADATA_ENTRIES)


def entries(values: Mapping[str, str], field: str, limit: int) -> None:
    if len(values) > limit:
        raise over_limit(field, f"{len(values)} entries", "entries", limit, "Use fewer.")
    for key, value in values.items():
        name(key, f"{field} key")
        text(value, f"{field}[{key}]", limits.NAME_BYTES)


def within(value: float, least: float, most: float, field: str) -> None:
    if not least <= value <= most:
        raise InvalidArgument(f"{field}={value} is outside {least}..{most}.", field=field)


def retry(policy: RetryPolicy | None, field: str) -> None:
    if policy is None:
        return
    if policy.maximum_attempts != UNLIMITED:
        within(policy.maximum_attempts, 1, _INT32_END - 1, f"{field}.maximum_attempts")
    longest_ms = limits.DURATION_MAX_US // 1_000
    within(policy.initial_interval_ms, 0, longest_ms, f"{field}.initial_interval_ms")
    within(policy.maximum_interval_ms, 0, longest_ms, f"{field}.maximum_interval_ms")
    if not math.isfinite(policy.backoff_coefficient):
        raise InvalidArgument(f"{field}.backoff_coefficient is not a finite number.", field=field)
    within(policy.backoff_coefficient, 0, 1_000_000, f"{field}.backoff_coefficient")
    within(policy.jitter, 0, 1, f"{field}.jitter")
    for listed, errors in (
        (f"{field}.non_retryable_errors", policy.non_retryable_errors),
        (f"{field}.retry_on_errors", policy.retry_on_errors),
    ):
        within(len(errors), 0, limits.METADATA_ENTRIES, f"{listed} count")
        for error in errors:
            name(error, listed)
    for error in policy.retry_on_errors:
        if error in policy.non_retryable_errors:
            raise InvalidArgument(
                f"{field}: {error!r} is both in retry_on_errors and in non_retryable_errors. "
                "Remove it from one of them.",
                field=field,
            )

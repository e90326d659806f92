"""Truncates errors to their limits: a failure must be recordable, however long its text is."""

import msgspec

from ...core import limits
from ...core.error_details import ErrorDetail

_TRUNCATED = b" [cut]"


def bounded_error(error: ErrorDetail, causes: int = limits.ERROR_CAUSES) -> ErrorDetail:
    """The same error if it is within its limits, else what fits, with a mark where it was truncated."""
    cause = error.cause
    if cause is not None:
        cause = bounded_error(cause, causes - 1) if causes > 1 else None
    message = truncate_text(error.message, limits.ERROR_MESSAGE_BYTES)
    traceback = truncate_text(error.traceback, limits.ERROR_TRACEBACK_BYTES)
    if cause is error.cause and message is error.message and traceback is error.traceback and _is_plain(error):
        return error
    return msgspec.structs.replace(
        error,
        message=message,
        traceback=traceback,
        cause=cause,
        type=truncate_text(error.type, limits.NAME_BYTES),
        bases=tuple(truncate_text(base, limits.NAME_BYTES) for base in error.bases[: limits.METADATA_ENTRIES]),
        subject=truncate_text(error.subject, limits.NAME_BYTES),
        subject_id=truncate_text(error.subject_id, limits.NAME_BYTES),
        metadata=_truncate_entries(error.metadata),
        retry_after_ms=min(max(error.retry_after_ms, 0), limits.DURATION_MAX_US // 1_000),
    )


def _is_plain(error: ErrorDetail) -> bool:
    """Whether the short fields are within their limits."""
    short = (error.type, error.subject, error.subject_id, *error.bases)
    return (
        len(error.bases) <= limits.METADATA_ENTRIES
        and all(truncate_text(part, limits.NAME_BYTES) is part for part in short)
        and _truncate_entries(error.metadata) is error.metadata
        and 0 <= error.retry_after_ms <= limits.DURATION_MAX_US // 1_000
    )


def _truncate_entries(metadata: dict[str, str]) -> dict[str, str]:
    if not metadata:
        return metadata
    truncated = {
        truncate_text(key, limits.NAME_BYTES): truncate_text(value, limits.ERROR_MESSAGE_BYTES)
        for key, value in list(metadata.items())[: limits.METADATA_ENTRIES]
    }
    return metadata if truncated == metadata else truncated


def truncate_text(text: str, limit_bytes: int) -> str:
    """At most `limit_bytes` of UTF-8, without NUL and lone surrogates, which no database accepts."""
    if len(text) * 4 <= limit_bytes and "\0" not in text and (text.isascii() or text.isprintable()):
        return text
    data = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    if len(data) > limit_bytes:
        data = data[: limit_bytes - len(_TRUNCATED)].decode("utf-8", "ignore").encode() + _TRUNCATED
    truncated = data.decode()
    return text if truncated == text else truncated

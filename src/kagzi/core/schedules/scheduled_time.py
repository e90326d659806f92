"""The nominal time of a scheduled run: the schedule's time for which it was started.

It is kept in the metadata of the run's context, which never changes and is passed on with a claim, a retry, a fork, a
continue-as-new, an export and an import. On the wire it has its own field.
"""

import re
from collections.abc import Mapping

from ..records import Payload
from ..times import Timestamp

METADATA_KEY = "kagzi-scheduled-at"  # microseconds since 1970 UTC, in digits

_DIGITS = re.compile(r"-?[0-9]{1,18}")


def with_scheduled_time(context: Payload | None, scheduled_at: Timestamp | None) -> Payload | None:
    """The context to store for a run with that nominal time; None: the run does not belong to a schedule."""
    if scheduled_at is None:
        return context
    if context is None:
        return Payload(b"", {METADATA_KEY: str(scheduled_at)})
    return Payload(context.data, {**(context.metadata or {}), METADATA_KEY: str(scheduled_at)})


def with_scheduled_time_of(context: Payload, metadata: Mapping[str, str] | None) -> Payload:
    """The context of a run that continues another, whose context had this metadata."""
    if not metadata or METADATA_KEY not in metadata:
        return context
    return Payload(context.data, {**(context.metadata or {}), METADATA_KEY: metadata[METADATA_KEY]})


def split_scheduled_time(context: Payload | None) -> tuple[Payload | None, Timestamp | None]:
    """The context as the caller gave it, and the nominal time; the inverse of `with_scheduled_time`."""
    if context is None or not context.metadata or METADATA_KEY not in context.metadata:
        return context, None
    rest = {key: value for key, value in context.metadata.items() if key != METADATA_KEY}
    original = Payload(context.data, rest or None) if context.data or rest else None
    text = context.metadata[METADATA_KEY]
    return original, int(text) if _DIGITS.fullmatch(text) else None

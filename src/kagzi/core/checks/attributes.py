"""Permanent attributes that programs give a run at its start: labels, priority. Checked before anything is sent."""

from collections.abc import Mapping
from typing import cast

from .. import limits
from ..errors import InvalidArgument
from ..records import NO_LABELS


def is_text(text: object) -> bool:
    """Whether it is a non-empty string. Callers are users, who may ignore annotations."""
    return isinstance(text, str) and bool(text)


def checked_labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    if labels is None:
        return NO_LABELS
    if not isinstance(cast("object", labels), Mapping):
        raise InvalidArgument(f"labels={labels!r} must map strings to strings.", field="labels")
    texts = dict(labels)
    for key, value in texts.items():
        if not (is_text(key) and isinstance(cast("object", value), str)):
            raise InvalidArgument(f"labels: {key!r}: {value!r} must both be strings.", field="labels")
    return texts


def checked_priority(priority: object) -> int:
    low, high = limits.PRIORITY_MIN, limits.PRIORITY_MAX
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise InvalidArgument(f"priority={priority!r} must be a whole number, {low}..{high}.", field="priority")
    if not low <= priority <= high:
        raise InvalidArgument(f"priority={priority} is outside {low}..{high}.", field="priority")
    return priority

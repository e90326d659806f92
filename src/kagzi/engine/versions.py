"""Which of two versions is the newer: as numbers if both are, otherwise as text."""

from collections.abc import Iterable
from functools import cmp_to_key

from ..core.records import Served


def compare_versions(one: str, other: str) -> int:
    """Negative if `one` is older than `other`, 0 if they are alike."""
    if one.isdecimal() and other.isdecimal():
        return int(one) - int(other)
    return (one > other) - (one < other)


def best_first(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(versions), key=cmp_to_key(compare_versions), reverse=True))


def versions_by_type(served: Iterable[Served]) -> dict[str, tuple[str, ...]]:
    by_type: dict[str, list[str]] = {}
    for pair in served:
        by_type.setdefault(pair.workflow_type, []).append(pair.version)
    return {workflow_type: best_first(versions) for workflow_type, versions in by_type.items()}

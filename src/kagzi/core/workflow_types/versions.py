"""Versions of workflow types: how they are ordered, which one a new run gets, and which changes are allowed."""

import re
from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from typing import Literal, TypeAlias

import msgspec

from ..errors import PreconditionFailed, not_found
from ..text.commands import quoted
from ..times import Timestamp
from .schemas import NOTHING_REGISTERED, RegisteredSchemas
from .type_key import TypeKey

VersionChange: TypeAlias = Literal["default", "no_default", "deprecate", "restore"]

_PARTS = re.compile(r"(\d+)")


class VersionMark(msgspec.Struct, frozen=True):
    """The fields that decide about new runs. `is_set`: an operator made it the default."""

    workflow_type: str
    version: str
    deprecated: bool = False
    is_set: bool = False
    schemas: RegisteredSchemas = NOTHING_REGISTERED


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`is_default`: for runs that request no version. `open_is_capped`: there may be more open runs than counted."""

    workflow_type: str
    version: str
    first_seen_at: Timestamp
    deprecated: bool = False
    is_set: bool = False
    is_default: bool = False
    open_runs: int = 0
    open_is_capped: bool = False
    workers: int = 0


class BuildReplay(msgspec.Struct, frozen=True):
    """What one look for runs that a new build has to replay came to. `more`: there may be more of that version."""

    key: TypeKey
    version: str
    woken: int
    more: bool


def compare_versions(one: str, other: str) -> int:
    """Negative if `one` is older than `other`, 0 if they are equal. Numbers in a version compare as numbers: 1.9 <
    1.10."""
    if one == other:
        return 0
    here, there = _key(one), _key(other)
    if here == there:  # 1 and 01
        return -1 if one < other else 1
    return -1 if here < there else 1


def best_first(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(versions), key=cmp_to_key(compare_versions), reverse=True))


def default_version(versions: Iterable[VersionMark]) -> str | None:
    """The default of one type: the one that was set, else the highest that is not deprecated. None: there is none."""
    taking = [mark for mark in versions if not mark.deprecated]
    for mark in taking:
        if mark.is_set:
            return mark.version
    best = best_first(mark.version for mark in taking)
    return best[0] if best else None


def version_for_start(workflow_type: str, requested: str, versions: Sequence[VersionMark]) -> str:
    """The version that a new run is pinned to; empty if none is known yet. Raises PreconditionFailed if none may be
    started."""
    if not versions:
        return requested
    if not requested:
        default = default_version(versions)
        if default is None:
            raise PreconditionFailed(
                f"every version of {workflow_type} is deprecated, so no new run can start. Start a worker with a newer "
                "version, or undo a deprecation: "
                f"kagzi versions deprecate {quoted(workflow_type)} {quoted(versions[0].version)} --undo",
                field="version",
            )
        return default
    if any(mark.version == requested and mark.deprecated for mark in versions):
        default = default_version(versions)
        instead = (
            f"Ask for version {default}, or for none" if default is not None else "Start a worker with a newer one"
        )
        raise PreconditionFailed(
            f"version {requested} of {workflow_type} is deprecated and accepts no new runs. {instead}; or undo it: "
            f"kagzi versions deprecate {quoted(workflow_type)} {quoted(requested)} --undo",
            field="version",
        )
    return requested


def check_change(versions: Sequence[VersionMark], workflow_type: str, version: str, change: VersionChange) -> None:
    """Raises NotFound for an unregistered version, and PreconditionFailed if a deprecated one would be default."""
    if change == "no_default":
        if not versions:
            raise not_found("workflow type", workflow_type)
        return
    mark = next((mark for mark in versions if mark.version == version), None)
    if mark is None:
        raise not_found("version", f"{version} of {workflow_type}")
    if change == "default" and mark.deprecated:
        raise PreconditionFailed(
            f"version {version} of {workflow_type} is deprecated, so it cannot be the default. Undo that first: "
            f"kagzi versions deprecate {quoted(workflow_type)} {quoted(version)} --undo",
            field="version",
        )
    if change == "deprecate" and mark.is_set:
        raise PreconditionFailed(
            f"version {version} of {workflow_type} was set as the default, so it cannot be deprecated. Set another "
            f"first: kagzi versions set-default {quoted(workflow_type)} VERSION",
            field="version",
        )


def _key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers sort before words, each compared by its own type."""
    parts = (part for part in _PARTS.split(version) if part)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)

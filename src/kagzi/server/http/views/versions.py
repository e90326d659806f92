"""Versions of workflow types."""

from ....core.times import moment_text
from ....core.workflow_types.versions import VersionRecord
from ..route import Input
from .common import Moment, PageQuery, View


class VersionListQuery(PageQuery, frozen=True, kw_only=True):
    """`workflow`: only this type."""

    workflow: str | None = None


class DeprecateIn(Input, frozen=True, kw_only=True):
    """`undo`: let it take new runs again."""

    undo: bool = False


class VersionView(View, frozen=True, kw_only=True):
    """`is_default`: new runs without a version get it. `is_set`: it was set as the default, and is not just the highest
    version. `open_is_capped`: there may be more open runs than were counted."""

    workflow: str
    version: str
    is_default: bool
    is_set: bool
    deprecated: bool
    open_runs: int
    open_is_capped: bool
    workers: int
    first_seen_at: Moment


def version_view(record: VersionRecord) -> VersionView:
    return VersionView(
        workflow=record.workflow_type,
        version=record.version,
        is_default=record.is_default,
        is_set=record.is_set,
        deprecated=record.deprecated,
        open_runs=record.open_runs,
        open_is_capped=record.open_is_capped,
        workers=record.workers,
        first_seen_at=moment_text(record.first_seen_at),
    )

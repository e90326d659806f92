"""Bulk operations: an action on all runs that match a filter, and its progress."""

from hashlib import blake2b
from typing import Literal, TypeAlias

import msgspec

from .pages.cursor import Cursor
from .records import RunFilter
from .states import RunStatus
from .times import Timestamp

BulkAction: TypeAlias = Literal["cancel", "retry", "terminate", "delete", "resume"]

_OPEN = tuple(status for status in RunStatus if not status.ended)
_IMPLIED: dict[BulkAction, tuple[RunStatus, ...]] = {
    "cancel": _OPEN,
    "terminate": _OPEN,
    "retry": (RunStatus.FAILED,),
    "resume": (RunStatus.PAUSED,),
    "delete": (),
}


def meant(action: BulkAction, where: RunFilter) -> RunFilter:
    """Adds the statuses that an action implies if the filter names none: cancel only affects open runs, resume only
    paused ones."""
    return where if where.statuses else msgspec.structs.replace(where, statuses=_IMPLIED[action])


def filter_digest(namespace: str, action: BulkAction, where: RunFilter) -> str:
    """Identifies the runs of a request, to verify that the request to execute equals the one that was previewed."""
    text = msgspec.json.encode((namespace, action, meant(action, where)), order="deterministic")
    return blake2b(text, digest_size=16).hexdigest()


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The runs that are being changed, in list order: (created_at, run_id), or (finished_at, run_id) for a list sorted
    by end. `last`: no runs follow."""

    runs: tuple[tuple[Timestamp, str], ...]
    last: bool


class BulkOperation(msgspec.Struct, frozen=True, kw_only=True):
    """`matched` is `done` + `failed`; once it has finished, it counts all matches. `batch`: the runs in progress."""

    operation_id: str
    namespace: str
    action: BulkAction
    where: RunFilter
    reason: str
    request_id: str
    created_at: Timestamp
    matched: int = 0
    done: int = 0
    failed: int = 0
    last_error: str = ""
    finished_at: Timestamp | None = None
    stopped: bool = False
    cursor: Cursor | None = None
    batch: Batch | None = None


class BulkProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a batch. `cursor` is its last run; None if it was empty."""

    operation_id: str
    cursor: Cursor | None
    done: int
    failed: int
    last_error: str
    finished: bool

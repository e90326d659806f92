"""Operations on everything that a filter matches: what they are, and how far they are."""

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
    """What an action is about if the filter names no status: nobody means to cancel what has ended, or to
    resume what is not paused."""
    return where if where.statuses else msgspec.structs.replace(where, statuses=_IMPLIED[action])


def filter_digest(namespace: str, action: BulkAction, where: RunFilter) -> str:
    """Tells whether two requests are about the same runs: the one that was shown, and the one that is carried out."""
    text = msgspec.json.encode((namespace, action, meant(action, where)), order="deterministic")
    return blake2b(text, digest_size=16).hexdigest()


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The runs that are being changed, in list order: (created_at, run_id), or (finished_at, run_id) where that is by
    end. `last`: there are no others after them."""

    runs: tuple[tuple[Timestamp, str], ...]
    last: bool


class BulkOperation(msgspec.Struct, frozen=True, kw_only=True):
    """`matched` is `done` + `failed`, and, once it has finished, all there were. `batch`: what is being changed now."""

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
    """What a batch came to. `cursor` is its last run; None if it was empty."""

    operation_id: str
    cursor: Cursor | None
    done: int
    failed: int
    last_error: str
    finished: bool

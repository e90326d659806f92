"""Operations on many runs."""

from typing import cast

from ..core.bulk import BulkAction, BulkOperation
from ..core.errors import InvalidArgument
from ..v1 import workflow_pb2 as pb
from .common import read_time, read_time_if, write_time, write_time_if
from .runs import read_where, write_filter

_WORDS: tuple[BulkAction, ...] = ("cancel", "retry", "delete", "terminate", "resume")
_NUMBERS: dict[BulkAction, int] = {word: pb.BulkAction.Value(f"BULK_ACTION_{word.upper()}") for word in _WORDS}
BULK_ACTION_TO_WIRE = cast("dict[BulkAction, pb.BulkAction]", _NUMBERS)
BULK_ACTION_FROM_WIRE: dict[int, BulkAction] = {number: word for word, number in _NUMBERS.items()}


def read_bulk_action(action: int) -> BulkAction:
    """Raises InvalidArgument."""
    word = BULK_ACTION_FROM_WIRE.get(action)
    if word is None:
        known = ", ".join(f"BULK_ACTION_{word.upper()}" for word in _WORDS)
        raise InvalidArgument(f"action={action} is none of {known}.", field="action")
    return word


def write_bulk(operation: BulkOperation) -> pb.BulkOperation:
    return pb.BulkOperation(
        operation_id=operation.operation_id,
        action=BULK_ACTION_TO_WIRE[operation.action],
        matched=operation.matched,
        done=operation.done,
        failed=operation.failed,
        finished=operation.finished_at is not None,
        created_at=write_time(operation.created_at),
        finished_at=write_time_if(operation.finished_at),
        filter=write_filter(operation.where),
        reason=operation.reason,
        stopped=operation.stopped,
        last_error=operation.last_error,
    )


def read_bulk(message: pb.BulkOperation, namespace: str) -> BulkOperation:
    """What the server alone knows of it (its request, where it is) is left empty."""
    return BulkOperation(
        operation_id=message.operation_id,
        namespace=namespace,
        action=read_bulk_action(message.action),
        where=read_where(message.filter),
        reason=message.reason,
        request_id="",
        created_at=read_time(message.created_at),
        matched=message.matched,
        done=message.done,
        failed=message.failed,
        last_error=message.last_error,
        finished_at=read_time_if(message, "finished_at"),
        stopped=message.stopped,
    )

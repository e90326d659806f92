"""Operations on many runs."""

from ..core.bulk import BulkAction, BulkOperation
from ..v1 import workflow_pb2 as pb
from .enums import numbers_of, word_of, words_of
from .fields import writer
from .requests import write_filter

_ACTIONS: dict[int, BulkAction] = words_of(pb.BulkAction.DESCRIPTOR, BulkAction)
BULK_ACTION_TO_WIRE = numbers_of(_ACTIONS)

write_bulk = writer(
    pb.BulkOperation,
    BulkOperation,
    unsent=("namespace", "request_id", "where", "cursor", "batch"),
    finished=lambda operation: operation.finished_at is not None,
    filter=lambda operation: write_filter(operation.where),
)


def read_bulk_action(action: int) -> BulkAction:
    """Raises InvalidArgument."""
    return word_of(_ACTIONS, action, pb.BulkAction.DESCRIPTOR, "action")

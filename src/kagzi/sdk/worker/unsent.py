"""Operations that are not sent, and the refusals that their runs get instead."""

import logging

from ...core import limits
from ...core.errors import limit_reached
from ...v1 import common_pb2
from ...v1 import worker_pb2 as pb
from ..transport.payload_codec import MessageCodec

logger = logging.getLogger("kagzi.worker")


def encode_operations(codec: MessageCodec, group: pb.RunOperations) -> list[pb.OperationAnswer]:
    """Encode the payloads of the operations. Operations that cannot be encoded are removed, and their runs are handed
    back as after a server error. Returns those refusals."""
    refusals: list[pb.OperationAnswer] = []
    for place, operation in reversed(list(enumerate(group.operations))):
        try:
            codec.encode(operation)
        except Exception as error:  # noqa: BLE001  the codec is user code
            refusals.append(_refuse_not_encoded(operation.id, error))
            del group.operations[place]
    return refusals


def encode_update(codec: MessageCodec | None, update: pb.SessionUpdate) -> None:
    """Encode the log lines of steps. If that fails they are dropped: log lines may be lost."""
    if codec is None or not update.step_logs:
        return
    try:
        codec.encode(update)
    except Exception:
        logger.exception("the codec failed: the log lines of some steps are not sent")
        del update.step_logs[:]


def _refuse_not_encoded(id: int, error: Exception) -> pb.OperationAnswer:
    refused = common_pb2.ErrorDetail(
        code=common_pb2.ERROR_CODE_INTERNAL,
        kind=common_pb2.ERROR_KIND_TRANSIENT,
        message=f"the codec failed: {type(error).__name__}: {error}",
    )
    return pb.OperationAnswer(id=id, refused=refused)


def refuse_too_large(id: int, part: bytes) -> pb.OperationAnswer:
    [run] = pb.SessionRequest.FromString(part).runs
    kind = run.operations[0].WhichOneof("kind")
    message = (
        f"the operation {kind} takes {len(part)} bytes; a server reads {limits.MESSAGE_HARD_BYTES} "
        "(MESSAGE_HARD_BYTES) at once. "
        "Pass less data, or wait for fewer things at a time."
    )
    refused = common_pb2.ErrorDetail(
        code=common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED,
        kind=common_pb2.ERROR_KIND_PERMANENT,
        message=message,
        non_retryable=True,
        metadata=limit_reached("message_bytes", limits.MESSAGE_HARD_BYTES),
    )
    return pb.OperationAnswer(id=id, refused=refused)

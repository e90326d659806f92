"""Recorded values that this worker's codec cannot decode: the run is paused, and none of it is lost."""

from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...core.records import ENCODING
from ...core.text.commands import quoted
from ...v1 import common_pb2 as common
from ..transport.payload_codec import CLEAR, Undecodable, refuse_encoded
from .interruption import in_cleanup
from .run_execution import RunExecution

_WHY = "because a recorded value cannot be decoded"


def pause_if_encoded(run: RunExecution, payload: common.Payload, what: str) -> None:
    """Raises the exception of `pause` if the payload is still encoded."""
    try:
        refuse_encoded(payload.metadata, what)
    except Undecodable as error:
        raise pause(run, error) from error


def pause(run: RunExecution, error: Undecodable) -> BaseException:
    """The exception of the call that needs the value. No code sees it: a missing key is not the run's fault.

    A run that is being cancelled is not paused, because it could not end then: there the call ends like any other."""
    if run.cancelling:
        return error if in_cleanup() else run.interruption.cancelled()
    problem = ErrorDetail(
        code=ErrorCode.PRECONDITION_FAILED,
        kind=ErrorKind.PERMANENT,
        message=f"{error.message.rstrip('.')}. Then resume the run: kagzi resume {quoted(run.run_id)}",
        non_retryable=True,
        metadata={ENCODING: CLEAR},
    )
    return run.pause_with(_WHY, problem)

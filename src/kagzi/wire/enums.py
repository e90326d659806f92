"""The words of core and their numbers on the wire. Tables, so that reading and writing is one look-up."""

from typing import cast

from ..core.error_details import ErrorCode, ErrorKind
from ..core.run.commands import OnConflict
from ..core.states import RunStatus, StepKind, StepStatus, WaitReason, WorkerStatus
from ..v1 import common_pb2, worker_pb2, workflow_pb2

_RUN = {word: workflow_pb2.WorkflowStatus.Value(f"WORKFLOW_STATUS_{word.name}") for word in RunStatus}
_WAIT = {word: workflow_pb2.WaitReason.Value(f"WAIT_REASON_{word.name}") for word in WaitReason}
_STEP = {word: worker_pb2.StepStatus.Value(f"STEP_STATUS_{word.name}") for word in StepStatus}
_STEP_KIND = {word: worker_pb2.StepKind.Value(f"STEP_KIND_{word.name}") for word in StepKind}
_WORKER = {word: worker_pb2.WorkerStatus.Value(f"WORKER_STATUS_{word.name}") for word in WorkerStatus}
_CODE = {word: common_pb2.ErrorCode.Value(f"ERROR_CODE_{word.name}") for word in ErrorCode}
_KIND = {word: common_pb2.ErrorKind.Value(f"ERROR_KIND_{word.name}") for word in ErrorKind}
_ON_CONFLICT_WORDS: tuple[OnConflict, ...] = ("existing", "existing_or_completed", "fail", "replace")
_ON_CONFLICT: dict[OnConflict, int] = {
    word: workflow_pb2.OnConflict.Value(f"ON_CONFLICT_{word.upper()}") for word in _ON_CONFLICT_WORDS
}

# The stubs say `int` where a number comes out, and want the enum where it goes in.
RUN_STATUS_TO_WIRE = cast("dict[RunStatus, workflow_pb2.WorkflowStatus]", _RUN)
WAIT_REASON_TO_WIRE = cast("dict[WaitReason, workflow_pb2.WaitReason]", _WAIT)
STEP_STATUS_TO_WIRE = cast("dict[StepStatus, worker_pb2.StepStatus]", _STEP)
STEP_KIND_TO_WIRE = cast("dict[StepKind, worker_pb2.StepKind]", _STEP_KIND)
WORKER_STATUS_TO_WIRE = cast("dict[WorkerStatus, worker_pb2.WorkerStatus]", _WORKER)
ERROR_CODE_TO_WIRE = cast("dict[ErrorCode, common_pb2.ErrorCode]", _CODE)
ERROR_KIND_TO_WIRE = cast("dict[ErrorKind, common_pb2.ErrorKind]", _KIND)
ON_CONFLICT_TO_WIRE = cast("dict[OnConflict, workflow_pb2.OnConflict]", _ON_CONFLICT)

RUN_STATUS_FROM_WIRE = {number: word for word, number in _RUN.items()}
STEP_STATUS_FROM_WIRE = {number: word for word, number in _STEP.items()}
STEP_KIND_FROM_WIRE = {number: word for word, number in _STEP_KIND.items()}
WORKER_STATUS_FROM_WIRE = {number: word for word, number in _WORKER.items()}
WAIT_REASON_FROM_WIRE = {number: word for word, number in _WAIT.items()}
ERROR_CODE_FROM_WIRE = {number: word for word, number in _CODE.items()}
ERROR_KIND_FROM_WIRE = {number: word for word, number in _KIND.items()}
ON_CONFLICT_FROM_WIRE: dict[int, OnConflict] = {number: word for word, number in _ON_CONFLICT.items()}

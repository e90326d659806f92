"""Tables of core's enum members and their numbers on the wire: converting one is a look-up."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar, get_args

from google.protobuf.descriptor import EnumDescriptor

from ..core.error_details import ErrorCode, ErrorKind
from ..core.errors import InvalidArgument
from ..core.states import RunStatus, StepKind, StepStatus, WorkerStatus
from ..v1 import common_pb2, worker_pb2, workflow_pb2

Word = TypeVar("Word")


def words_of(enum: EnumDescriptor, kind: Any) -> dict[int, Any]:
    """The members of an Enum or a Literal, by the numbers of the enum values with the same names."""
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper()
    words: list[Any] = list(get_args(kind) or kind)
    names = {word: f"{prefix}_{word.name if isinstance(word, Enum) else word.upper()}" for word in words}
    return {enum.values_by_name[name].number: word for word, name in names.items()}


def word_of(words: Mapping[int, Word], number: int, enum: EnumDescriptor, field: str) -> Word:
    """Raises InvalidArgument for an unknown number."""
    word = words.get(number)
    if word is None:
        known = ", ".join(value.name for value in enum.values if value.number)
        raise InvalidArgument(f"{field}={number} must be one of {known}.", field=field)
    return word


def numbers_of(words: Mapping[int, Word]) -> dict[Word, Any]:
    """Any, because the stubs return `int` when reading a number but require the enum when setting it."""
    return {word: number for number, word in words.items()}


RUN_STATUS_FROM_WIRE: dict[int, RunStatus] = words_of(workflow_pb2.WorkflowStatus.DESCRIPTOR, RunStatus)
STEP_STATUS_FROM_WIRE: dict[int, StepStatus] = words_of(worker_pb2.StepStatus.DESCRIPTOR, StepStatus)
STEP_KIND_FROM_WIRE: dict[int, StepKind] = words_of(worker_pb2.StepKind.DESCRIPTOR, StepKind)
WORKER_STATUS_FROM_WIRE: dict[int, WorkerStatus] = words_of(worker_pb2.WorkerStatus.DESCRIPTOR, WorkerStatus)
ERROR_CODE_FROM_WIRE: dict[int, ErrorCode] = words_of(common_pb2.ErrorCode.DESCRIPTOR, ErrorCode)
ERROR_KIND_FROM_WIRE: dict[int, ErrorKind] = words_of(common_pb2.ErrorKind.DESCRIPTOR, ErrorKind)

RUN_STATUS_TO_WIRE = numbers_of(RUN_STATUS_FROM_WIRE)
STEP_STATUS_TO_WIRE = numbers_of(STEP_STATUS_FROM_WIRE)
STEP_KIND_TO_WIRE = numbers_of(STEP_KIND_FROM_WIRE)
WORKER_STATUS_TO_WIRE = numbers_of(WORKER_STATUS_FROM_WIRE)
ERROR_CODE_TO_WIRE = numbers_of(ERROR_CODE_FROM_WIRE)
ERROR_KIND_TO_WIRE = numbers_of(ERROR_KIND_FROM_WIRE)

RECORD_STEP = "record-step"
"""The feature with which a server's welcome says that it can read record_step operations."""
PARTS = "parts"
"""The feature with which it says that it can read requests in parts."""

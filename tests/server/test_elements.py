"""The elements of a message are counted before it is decoded: all of them, however deep they are, of each request."""

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument
from kagzi.server.grpc.elements import OWN_LIMITS, check_elements
from kagzi.v1 import common_pb2, worker_pb2, workflow_pb2
from tests.server.hollow import Path, all_paths, enclosed, hollow, named

PLACES = [pytest.param(*place, id=f"{place[0].name}-{named(place[1])}") for place in all_paths()]
CONTROL = 40


def message_type(method: MethodDescriptor) -> type[Message]:
    return GetMessageClass(method.input_type)


@pytest.mark.parametrize(("method", "path"), PLACES)
def test_each_list_and_map_of_each_request_has_a_limit(method: MethodDescriptor, path: Path) -> None:
    own = OWN_LIMITS.get(path[-1].full_name)
    limit = own or limits.MESSAGE_ELEMENTS
    around = 0 if own else sum(field.is_repeated and field.full_name not in OWN_LIMITS for field in path[:-1])
    check_elements(hollow(path, limit - around), message_type(method))
    with pytest.raises(InvalidArgument) as refusal:
        check_elements(hollow(path, limit - around + 1), message_type(method))
    assert refusal.value.subject_id == path[-1].name
    assert refusal.value.metadata == {"limit": "message_elements", "maximum": str(limit)}
    assert f"{path[-1].name} " in refusal.value.message
    assert f"have {limit + 1} elements; the limit of one message is {limit}. Send fewer" in refusal.value.message


def test_all_fields_with_a_limit_of_their_own_are_fields_of_requests() -> None:
    assert set(OWN_LIMITS) <= {path[-1].full_name for _, path in all_paths()}


def test_lists_of_a_message_share_the_limit() -> None:
    half = limits.MESSAGE_ELEMENTS // 2
    request = workflow_pb2.StartWorkflowRequest(
        labels={str(number): "" for number in range(half)},
        input=common_pb2.Payload(metadata={str(number): "" for number in range(half)}),
    )
    check_elements(request.SerializeToString(), workflow_pb2.StartWorkflowRequest)
    request.labels["one more"] = ""
    with pytest.raises(InvalidArgument, match="the lists and maps of the message, labels and others, have 20001"):
        check_elements(request.SerializeToString(), workflow_pb2.StartWorkflowRequest)


def test_elements_of_elements_are_added_up() -> None:
    start = workflow_pb2.StartWorkflowRequest(labels={str(number): "" for number in range(limits.LABELS)})
    starts = [start] * (limits.MESSAGE_ELEMENTS // (limits.LABELS + 1))
    check_elements(workflow_pb2.StartBatchRequest(starts=starts).SerializeToString(), workflow_pb2.StartBatchRequest)
    more = workflow_pb2.StartBatchRequest(starts=[*starts, start])
    with pytest.raises(InvalidArgument, match="labels and others"):
        check_elements(more.SerializeToString(), workflow_pb2.StartBatchRequest)


def test_causes_of_causes_are_counted() -> None:
    """A message within messages of its own type."""
    error = common_pb2.ErrorDetail(metadata={str(number): "" for number in range(limits.MESSAGE_ELEMENTS // CONTROL)})
    chain = error
    for _ in range(CONTROL):
        chain = common_pb2.ErrorDetail(cause=chain, metadata=error.metadata)
    request = worker_pb2.FailWorkflowRequest(error=chain)
    with pytest.raises(InvalidArgument, match="metadata have 20500 elements"):
        check_elements(request.SerializeToString(), worker_pb2.FailWorkflowRequest)


def test_values_are_not_elements() -> None:
    request = workflow_pb2.StartWorkflowRequest(
        workflow_type="flow", input=common_pb2.Payload(data=hollow(all_paths()[0][1], 100_000))
    )
    check_elements(request.SerializeToString(), workflow_pb2.StartWorkflowRequest)


def test_operations_do_not_take_what_others_need() -> None:
    """A worker sends them beside leases, and each may have a payload with metadata."""
    request = worker_pb2.SessionRequest(
        runs=[worker_pb2.RunOperations(operations=[worker_pb2.Operation()] * limits.MESSAGE_OPERATIONS)],
        heartbeat=[worker_pb2.LeasedRun()] * limits.HEARTBEAT_LEASES,
        received=[worker_pb2.LeasedRun()] * limits.HEARTBEAT_LEASES,
    )
    park = request.runs[0].operations.add().park
    park.waits.extend("s" for _ in range(limits.STEPS_PER_RUN))
    del request.runs[0].operations[0]
    check_elements(request.SerializeToString(), worker_pb2.SessionRequest)


@pytest.mark.parametrize("data", [b"\xff" * 100, b"\x0a", b"\x0a\x05ab"])
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(DecodeError):
        check_elements(data, workflow_pb2.StartBatchRequest)


def test_a_list_that_is_no_message_is_no_message() -> None:
    """What is inside is looked at, too: else a message could be decoded that was not counted."""
    (starts,) = [path for method, path in all_paths() if method.name == "StartBatch" and named(path) == "starts"]
    with pytest.raises(DecodeError):
        check_elements(enclosed(starts[0], b"\xff\xff") * 2, workflow_pb2.StartBatchRequest)


def test_messages_that_are_not_counted_are_too_small_to_matter() -> None:
    """No element takes less than two bytes: its tag, and its length or its value."""
    assert limits.MESSAGE_UNCOUNTED_BYTES // 2 < 2 * limits.MESSAGE_ELEMENTS
    assert min(len(hollow(path, 1)) for _, path in all_paths()) == 2

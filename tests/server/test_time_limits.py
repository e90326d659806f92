"""No request may name a time or a duration that the server could not keep, count with or send back.

The fields are found by the descriptors of the requests, so a new one is under the rule without being named here.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import grpc
import httpx
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from kagzi.core.error_details import ErrorCode
from kagzi.core.errors import InvalidArgument
from kagzi.core.limits import DURATION_MAX_US, PAYLOAD_BYTES
from kagzi.core.records import Lease, RunKey
from kagzi.core.run.commands import Command, StartChild
from kagzi.core.run.outcomes import Refused
from kagzi.engine.checks.operations import Operations
from kagzi.server.app import Server
from kagzi.server.grpc.registration import SERVICES, path_of
from kagzi.server.listen import ListenAddress
from kagzi.system import SystemClock, SystemIds
from kagzi.v1 import worker_pb2, workflow_pb2, workflow_schedule_pb2
from kagzi.wire.operations import read_operation
from kagzi.wire.status import from_rpc_error
from kagzi.wire.steps import read_step_logs
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs, leased

LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59
INT64_MAX = 2**63 - 1
MESSAGES = {"google.protobuf.Timestamp", "google.protobuf.Duration"}
UNITS_US = {"_us": 1, "_ms": 1_000, "_seconds": 1_000_000}
POINTS = ("until_us", "at_us")

CLAMPED = {"retry_after_ms"}  # of an error: a failure must be recordable, whatever it says
LEFT_OUT = "step_logs"  # lines are best effort: one with a time that cannot be is dropped, and counted
WRITTEN_BY_THE_SERVER = {"CreateNamespace", "UpdateNamespace"}  # the times in their requests are not read


class Place(NamedTuple):
    method: str
    path: str
    names: tuple[str, ...]
    field: FieldDescriptor

    def __str__(self) -> str:
        return f"{self.method}.{'.'.join(self.names)}"


def places_in(descriptor: Descriptor, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldDescriptor]]:
    for field in descriptor.fields:
        inner = field.message_type
        is_time = inner is not None and inner.full_name in MESSAGES
        if is_time or (inner is None and field.name.endswith(tuple(UNITS_US))):
            yield (*names, field.name), field
        elif inner is not None and field.name not in names and not inner.GetOptions().map_entry:
            yield from places_in(inner, (*names, field.name))


PLACES = [
    Place(method.name, path_of(method), names, field)
    for service in SERVICES
    for method in service.methods
    for names, field in places_in(method.input_type)
    if names[-1] not in CLAMPED and LEFT_OUT not in names and method.name not in WRITTEN_BY_THE_SERVER
]
UNARY = [place for place in PLACES if place.method != "Session"]
STREAMED = [place for place in PLACES if place.method == "Session"]


def beyond(field: FieldDescriptor) -> list[Any]:
    """Values that are out of range, just and by far."""
    if field.message_type is None:
        unit_us = next(unit for ending, unit in UNITS_US.items() if field.name.endswith(ending))
        if field.type == FieldDescriptor.TYPE_UINT64:
            return [DURATION_MAX_US // unit_us + 1, 2**64 - 1]
        if field.name in POINTS:
            return [(LAST_SECOND + 1) * 1_000_000, INT64_MAX, -1]
        return [DURATION_MAX_US // unit_us + 1, INT64_MAX, -1, -INT64_MAX]
    if field.message_type.name == "Timestamp":
        return [
            Timestamp(seconds=LAST_SECOND + 1),
            Timestamp(seconds=LAST_SECOND, nanos=999_999_001),  # rounds up to the year 10000
            Timestamp(seconds=INT64_MAX),
            Timestamp(seconds=-1),
            Timestamp(seconds=-INT64_MAX),
        ]
    return [
        Duration(seconds=DURATION_MAX_US // 1_000_000 + 1),
        Duration(seconds=INT64_MAX, nanos=999_999_999),
        Duration(seconds=-1),
        Duration(seconds=-INT64_MAX),
    ]


def put(message: Message, names: tuple[str, ...], value: Any) -> None:
    """Into the innermost of `names`; a repeated field gets its value in its first item."""
    target: Any = message
    for name in names[:-1]:
        target = getattr(target, name)
        if hasattr(target, "add"):
            target = target[0] if len(target) else target.add()
    if isinstance(value, Message):
        getattr(target, names[-1]).CopyFrom(value)
    else:
        setattr(target, names[-1], value)


class World:
    """Requests that would be accepted."""

    def __init__(self, task: Any, worker_id: str, schedule_id: str) -> None:
        start = workflow_pb2.StartWorkflowRequest(workflow_type="greet", workflow_id="a-run")
        schedule = {"workflow_type": "greet", "cron_expr": "0 0 * * *"}
        step = {**leased(task), "step_id": "a-step"}
        self._numbers = count()
        self._fields: dict[str, dict[str, Any]] = {
            "StartWorkflow": {"workflow_type": "greet"},
            "ListWorkflows": {},
            "StartBatch": {"starts": [start]},
            "Wait": {"run_id": task.run_id},
            "CreateKey": {"name": "a-key", "scopes": ["read"]},
            "RotateKey": {"key_id": "0123456789abcdef"},
            "ListAudit": {},
            "SignalWithStart": {"start": start, "signal_name": "go"},
            "CountWorkflows": {},
            "StartBulkOperation": {"action": workflow_pb2.BULK_ACTION_CANCEL},
            "PollTask": {"worker_id": worker_id},
            "BeginStep": {**leased(task), "step_name": "a-step"},
            "Sleep": step,
            "WaitSignal": {**step, "signal_name": "go"},
            "StartChild": {**step, "start": start},
            "CreateWorkflowSchedule": schedule,
            "UpdateWorkflowSchedule": {"schedule_id": schedule_id},
            "UpsertWorkflowSchedule": {
                "schedule": workflow_schedule_pb2.CreateWorkflowScheduleRequest(**schedule, schedule_id="other")
            },
            "BackfillWorkflowSchedule": {
                "schedule_id": schedule_id,
                "from": Timestamp(seconds=1),
                "to": Timestamp(seconds=2),
            },
            "PreviewWorkflowSchedule": {"schedule_id": schedule_id},
            "GetStats": {},
        }

    def request(self, place: Place, value: Any) -> Message:
        assert place.method in self._fields, f"{place.method} is new: say here which request of it would be accepted"
        [descriptor] = [
            method.input_type for service in SERVICES for method in service.methods if path_of(method) == place.path
        ]
        request = GetMessageClass(descriptor)(**self._fields[place.method])
        if place.method == "StartChild":  # its refusal is recorded: a second start of the step would get the first one
            put(request, ("step_id",), f"step-{next(self._numbers)}")
        if place.field.name == "interval":
            self._without_cron(request)
        put(request, place.names, value)
        return request

    def _without_cron(self, request: Any) -> None:
        for message in (request, getattr(request, "schedule", None)):
            if message is not None and "cron_expr" in message.DESCRIPTOR.fields_by_name:
                message.cron_expr = ""
                message.schedule_id = message.schedule_id if request.DESCRIPTOR.name.startswith("Up") else ""


async def refusal(stubs: Stubs, place: Place, request: Message) -> str:
    """What is wrong with the answer; empty: it is a refusal that names the field."""
    call = stubs.channel.unary_unary(place.path)
    try:
        answer = await call(request.SerializeToString(), timeout=TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        refused = from_rpc_error(error)
        if (
            isinstance(refused, InvalidArgument)
            and place.names[-1].removesuffix("_seconds") in f"{refused.field} {refused}"
        ):
            return ""
        return f"{error.code()}: {error.details()}"
    if place.method == "StartBatch":
        [item] = workflow_pb2.StartBatchResponse.FromString(answer).items
        return "" if place.names[-1] in item.error.message else f"item: {item}"
    return "accepted"


async def test_every_time_and_duration_of_a_call_has_its_limit(memory_stubs: Stubs) -> None:
    stubs = memory_stubs
    task = await stubs.claim()
    worker_id = await stubs.register("other")
    create = stubs.channel.unary_unary("/kagzi.v1.WorkflowScheduleService/CreateWorkflowSchedule")
    schedule = workflow_schedule_pb2.CreateWorkflowScheduleRequest(
        workflow_type="greet", cron_expr="0 0 * * *", schedule_id="nightly", enabled=False
    )
    await create(schedule.SerializeToString(), timeout=TIMEOUT_S)
    world = World(task, worker_id, "nightly")
    assert len(UNARY) > 50
    wrong = {
        f"{place} = {str(value).strip()!r}": problem
        for place in UNARY
        for value in beyond(place.field)
        if (problem := await refusal(stubs, place, world.request(place, value)))
    }
    assert not wrong, "\n".join(f"{place}: {problem}" for place, problem in wrong.items())


def test_every_time_and_duration_of_an_operation_has_its_limit() -> None:
    ids = SystemIds()
    operations = Operations(PAYLOAD_BYTES, clock=SystemClock(), ids=ids)
    run = RunKey("default", ids.run_id(0, "default"))
    bodies: dict[str, dict[str, Any]] = {
        "begin_step": {"step_id": "s"},
        "record_step": {"step_id": "s", "output": {"data": b"1"}},
        "sleep": {"step_id": "s"},
        "wait_signal": {"step_id": "s", "signal_name": "go"},
        "start_child": {"step_id": "s", "start": {"workflow_type": "greet"}},
    }
    wrong: list[str] = []
    assert len(STREAMED) > 10
    for place in STREAMED:
        kind, names = place.names[2], place.names[3:]
        assert kind in bodies, f"{kind} is new: say here which operation of it would be accepted"
        for value in beyond(place.field):
            operation = worker_pb2.Operation(id=1, **{kind: bodies[kind]})
            put(getattr(operation, kind), names, value)
            refused = _refusal_of(operations, read_operation(operation, run, Lease(1, 1), SystemClock().now()))
            if names[-1].removesuffix("_us") not in refused:
                wrong.append(f"{place} = {str(value).strip()!r}: {refused}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("at_us", [-1, (LAST_SECOND + 1) * 1_000_000, INT64_MAX])
def test_log_lines_with_a_time_that_cannot_be_are_dropped(at_us: int) -> None:
    log = worker_pb2.StepLog(run_id="r", step_id="s")
    log.lines.add(at_us=at_us).text.data = b'"never"'
    log.lines.add(at_us=LAST_SECOND * 1_000_000).text.data = b'"late"'
    [read] = read_step_logs([log], "default")
    assert ([line.text for line in read.lines], read.dropped) == (["late"], 1)


def _refusal_of(operations: Operations, command: Command | Refused) -> str:
    if isinstance(command, Refused):
        return command.error.message
    try:
        checked = operations.check(command)
    except InvalidArgument as error:
        return f"{error.field}: {error.message}"
    if isinstance(checked, StartChild) and checked.refusal is not None:  # is recorded as the result of the step
        assert checked.refusal.code == ErrorCode.INVALID_ARGUMENT
        return f"{checked.refusal.subject_id}: {checked.refusal.message}"
    return "accepted"


@pytest.fixture
async def web(start_server: StartServer, database_url: str) -> Server:
    return await start_server(database_url, http=ListenAddress("127.0.0.1", 0))


async def test_the_last_time_there_is_is_kept_and_shown(web: Server) -> None:
    last = Timestamp(seconds=LAST_SECOND, nanos=999_999_000)
    nearly = Timestamp(seconds=LAST_SECOND, nanos=0)
    async with grpc.aio.insecure_channel(web.grpc_address) as channel:
        stubs = Stubs(channel)
        started = await stubs.start(start_at=nearly, deadline_at=last)
        run = await stubs.get(started.run_id)
        assert (run.deadline_at, run.wake_up_at) == (last, nearly)
        request = workflow_pb2.ExplainWorkflowRequest(run_id=started.run_id)
        assert (await stubs.workflows.ExplainWorkflow(request, timeout=TIMEOUT_S)).sentence
        where = workflow_pb2.WorkflowFilter(created_before=last)
        listed = await stubs.workflows.ListWorkflows(workflow_pb2.ListWorkflowsRequest(filter=where), timeout=TIMEOUT_S)
        assert len(listed.workflows) == 1
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
        assert (await client.get(started.url)).status_code == 200

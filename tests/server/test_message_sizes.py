"""Nothing that was accepted makes a message that its reader refuses: the largest of everything a worker and a server
say to each other. A field or a call that is added has to be added here."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kagzi.core import limits
from kagzi.core.error_details import ErrorDetail
from kagzi.core.pages.sizes import error_bytes, history_step_bytes, outcome_bytes, results_page, task_bytes
from kagzi.core.records import ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunKey, RunLease
from kagzi.core.run.outcomes import (
    Begun,
    ChildStarted,
    Fetched,
    Known,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    SignalBound,
    StepFailed,
    TimerSet,
)
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.engine import Notice
from kagzi.engine.checks.bounds import bounded_error
from kagzi.engine.checks.requests import REASON_BYTES
from kagzi.engine.services.tasks import fitting
from kagzi.sdk.execution.ports import Answer
from kagzi.sdk.worker.outbox import HEARTBEAT_TAG, RECEIVED_TAG, Outbox, OutPort, field
from kagzi.server.grpc.services.workers import write_poll
from kagzi.server.grpc.session import Outlet
from kagzi.system import SystemClock
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.answers import write_answer
from kagzi.wire.common import write_leased
from kagzi.wire.tasks import write_history_page, write_history_step, write_task
from tests.sdk.net.test_outbox import take
from tests.support.timeouts import LOADED_MACHINE_S
from tests.wire import strategies

NAME = "n" * limits.NAME_BYTES
RUN_ID = "0191e000-0000-7000-8000-00000000000a"
LEASE = Lease(2**62, 2**62)
MAPPING = {f"{n:03}" + "k" * (limits.NAME_BYTES - 3): "v" * limits.NAME_BYTES for n in range(limits.METADATA_ENTRIES)}
PAYLOAD = Payload(b"x" * limits.PAYLOAD_BYTES, MAPPING)


def _error() -> ErrorDetail:
    """As large as one gets through: all of a message, bounded as the engine does it."""
    error: ErrorDetail | None = None
    for _ in range(limits.ERROR_CAUSES + 1):
        error = ErrorDetail(
            message="m" * limits.ERROR_MESSAGE_BYTES,
            traceback="t" * limits.ERROR_TRACEBACK_BYTES,
            type=NAME,
            metadata=dict.fromkeys(MAPPING, "v" * 4096),
            cause=error,
        )
    assert error is not None
    return bounded_error(error)


ERROR = _error()
STEP = HistoryStep(
    step_id=NAME,
    kind=StepKind.FUNCTION,
    status=StepStatus.FAILED,
    begun_seq=2**62,
    seq=2**62,
    at=2**62,
    output=PAYLOAD,
    error=ERROR,
    details=PAYLOAD,
    child_run_id=RUN_ID,
)
TASK = ClaimedRun(
    run=RunKey(NAME, RUN_ID),
    lease=LEASE,
    worker_id=NAME,
    workflow_id=NAME,
    workflow_type=NAME,
    version=NAME,
    attempt=2**30,
    input=PAYLOAD,
    context=PAYLOAD,
    labels=MAPPING,
    created_at=2**62,
    claimed_at=2**62,
    deadline_at=2**62,
    last_seq=2**62,
    history=HistoryPage((STEP,), has_more=True, next_after=2**62),
    cancel_reason="r" * REASON_BYTES,
    parent_run_id=RUN_ID,
)
OUTCOMES: list[Outcome] = [
    Recorded(2**62, 2**62),
    Begun(2**62, 2**62, 2**30),
    Known(STEP),
    Known(msgspec.structs.replace(STEP, kind=StepKind.SIGNAL, status=StepStatus.COMPLETED)),
    Known(msgspec.structs.replace(STEP, kind=StepKind.SIGNAL)),
    RetryScheduled(2**62, 2**62, 2**30, 2**62),
    StepFailed(2**62, 2**62, 2**30, ERROR),
    TimerSet(2**62, 2**62, 2**62),
    SignalBound(2**62, 2**62, PAYLOAD),
    ChildStarted(2**62, 2**62, RUN_ID, created=False, status=RunStatus.PENDING),
    Parked(2**62, 2**62),
    Fetched(2**62, *results_page([STEP] * 3)),
    NotParked(2**62, *results_page([STEP] * 3)),
    NotParked(2**62, *results_page([msgspec.structs.replace(STEP, output=None, error=None, details=None)] * 50_000)),
    RunClosed(2**62, 2**62, RunStatus.FAILED, 2**62, RUN_ID),
    Refused(ERROR),
]


async def written(outlet: Outlet) -> list[bytes]:
    messages: list[bytes] = []

    async def write(data: bytes) -> None:
        messages.append(data)

    outlet.outbound.finish()
    await asyncio.wait_for(outlet.outbound.deliver(write), LOADED_MACHINE_S)
    return messages


def check(messages: Sequence[bytes], parts: Callable[[Any], int], kind: type[Any], reads: int) -> None:
    """Every one can be read, and one with several parts is cut where senders cut."""
    for data in messages:
        assert len(data) < reads
        assert len(data) <= limits.MESSAGE_SOFT_BYTES or parts(kind.FromString(data)) == 1, "it was not cut"


def size_of(response: pb.SessionResponse) -> int:
    plain = sum(len(commit.ids) for commit in response.acknowledged)
    return plain + len(response.answers) + len(response.tasks) + len(response.notices)


async def test_what_a_session_receives() -> None:
    outlet = Outlet(SystemClock())
    outlet.tasks([TASK] * 3)
    for outcome in OUTCOMES:
        outlet.answers([(number, outcome) for number in range(3)])
    outlet.answers([(2**60 + number, Recorded(2**62, 2**62)) for number in range(limits.BATCH_OPERATIONS * 100)])
    outlet.answers([answer for outcome in OUTCOMES for answer in [(1, outcome), (2, outcome)]])
    leased = [
        RunLease(RunKey("default", f"{RUN_ID[:-6]}{number:06}"), LEASE)
        for number in range(limits.WORKER_MAX_CONCURRENT)
    ]
    outlet.notices([Notice(item, "cancel_requested", "r" * REASON_BYTES) for item in leased])
    outlet.drain()
    messages = await written(outlet)
    check(messages, size_of, pb.SessionResponse, limits.MESSAGE_READ_BYTES)
    merged = pb.SessionResponse()
    for data in messages:
        merged.MergeFromString(data)
    assert (len(merged.tasks), len(merged.notices), merged.notice.should_drain) == (3, len(leased), True)
    assert len(merged.answers) + sum(len(part.ids) for part in merged.acknowledged) == 5 * len(OUTCOMES) + 20_000


def test_a_welcome_names_no_more_than_a_hello() -> None:
    """What is lost is some of what hello named, and a hello is read up to the hard limit."""
    leased = write_leased(RunLease(RunKey("default", RUN_ID), LEASE))
    count = limits.MESSAGE_HARD_BYTES // len(pb.SessionHello(leased=[leased]).SerializeToString())
    welcome = pb.SessionWelcome(worker_id=NAME, server_version=NAME, lost=[leased] * count)
    assert pb.SessionResponse(welcome=welcome).ByteSize() < limits.MESSAGE_READ_BYTES


def test_every_field_of_an_answer_is_shown_here() -> None:
    shown = {"welcome", "tasks", "acknowledged", "answers", "notices", "notice"}
    assert {each.name for each in pb.SessionResponse.DESCRIPTOR.fields} == shown
    kinds = {write_answer(1, outcome, 0).WhichOneof("kind") for outcome in OUTCOMES} - {None}
    assert {each.name for each in pb.OperationAnswer.DESCRIPTOR.oneofs_by_name["kind"].fields} == kinds


@settings(deadline=None)
@given(
    st.one_of(
        st.builds(Known, strategies.history_steps),
        st.builds(SignalBound, strategies.counts, strategies.times, strategies.payloads),
    )
)
def test_an_answer_is_never_larger_than_it_is_counted(outcome: Outcome) -> None:
    assert write_answer(2**62, outcome, 0).ByteSize() <= outcome_bytes(outcome)


@settings(deadline=None)
@given(strategies.claimed_runs, strategies.history_steps, strategies.errors)
def test_runs_steps_and_errors_are_never_larger_than_they_are_counted(
    claimed: ClaimedRun, step: HistoryStep, error: ErrorDetail
) -> None:
    assert write_task(claimed).ByteSize() <= task_bytes(claimed)
    assert write_history_step(step).ByteSize() <= history_step_bytes(step)
    assert write_answer(2**62, Refused(error), 0).ByteSize() <= error_bytes(error) + 256


# --- unary calls ------------------------------------------------------------------------------------------------------


def test_what_other_calls_of_a_worker_answer() -> None:
    polled, rest = fitting([TASK] * 3)
    assert (len(polled), len(rest)) == (1, 2)
    page, more = results_page([STEP] * 3)
    assert more
    answers: dict[str, Any] = {
        "PollTask": write_poll([write_task(run) for run in polled]),
        "Park": pb.ParkResponse(results=[write_history_step(step) for step in page], more=True),
        "GetHistory": write_history_page(HistoryPage((STEP,), has_more=True)),
        "BeginStep": pb.BeginStepResponse(cached_output=write_task(TASK).input, error=write_history_step(STEP).error),
        "WaitSignal": pb.WaitSignalResponse(payload=write_task(TASK).input),
        "Heartbeat": pb.HeartbeatResponse(cancel_requested=[RUN_ID] * 60_000),  # as many as a request can name
        "CompleteStep": pb.CompleteStepResponse(step=pb.Step(output=write_task(TASK).input)),
    }
    for name, answer in answers.items():
        assert answer.ByteSize() < limits.MESSAGE_READ_BYTES, name
    plain = {"Register", "Deregister", "FailStep", "CompleteWorkflow", "FailWorkflow", "Sleep", "Release", "StartChild"}
    methods = pb.DESCRIPTOR.services_by_name["WorkerService"].methods_by_name
    assert set(methods) == plain | set(answers) | {"Session"}


# --- what a worker says -----------------------------------------------------------------------------------------------


def _operations(port: OutPort) -> Iterator[pb.Operation]:
    def new() -> pb.Operation:
        return port.send(_ignore)

    task = write_task(TASK)
    error = write_history_step(STEP).error
    yield (operation := new())
    operation.begin_step.step_id = operation.begin_step.name = NAME
    operation.begin_step.input.CopyFrom(task.input)
    yield (operation := new())
    operation.complete_step.output.CopyFrom(task.input)
    yield (operation := new())
    operation.fail_step.error.CopyFrom(error)
    yield (operation := new())
    operation.complete_run.output.CopyFrom(task.input)
    yield (operation := new())
    operation.fail_run.error.CopyFrom(error)
    yield (operation := new())
    operation.start_child.start.input.CopyFrom(task.input)
    yield (operation := new())
    operation.continue_as_new.input.CopyFrom(task.input)
    yield (operation := new())
    operation.step_heartbeat.details.CopyFrom(task.input)
    yield (operation := new())
    operation.park.waits.extend([NAME] * (limits.MESSAGE_SOFT_BYTES // 4 // len(NAME)))
    yield (operation := new())
    operation.race.losers.extend([NAME] * 4_000)


def _ignore(_: Answer) -> None: ...


def test_what_a_worker_sends() -> None:
    outbox = Outbox(lambda: None, lambda: None)
    proof = pb.LeasedRun(run_id=RUN_ID, lease=pb.LeasedRun().lease).SerializeToString()
    ports = [OutPort(outbox, f"run-{number}", (1, 1), proof) for number in range(3)]
    count = sum(1 for port in ports for _ in _operations(port))
    messages: list[bytes] = []
    while taken := take(outbox):
        messages += taken
        for run in [run for data in taken for run in pb.SessionRequest.FromString(data).runs]:
            for operation in run.operations:
                outbox.answered(operation.id)
    check(
        messages,
        lambda request: sum(len(run.operations) for run in request.runs),
        pb.SessionRequest,
        limits.MESSAGE_HARD_BYTES,
    )
    sent = [pb.SessionRequest.FromString(data) for data in messages]
    assert sum(len(run.operations) for request in sent for run in request.runs) == count
    assert outbox.take_refusals() == []


def test_what_a_worker_sends_beside_its_operations() -> None:
    proof = pb.LeasedRun(run_id=RUN_ID, lease=write_task(TASK).lease).SerializeToString()
    beside = field(HEARTBEAT_TAG, proof) + field(RECEIVED_TAG, proof)
    assert len(beside) * limits.WORKER_MAX_CONCURRENT + limits.DIAGNOSTICS * 2 * limits.TROUBLE_DETAIL_BYTES < (
        limits.MESSAGE_HARD_BYTES
    )


def test_what_no_server_reads_is_refused_by_the_worker_itself() -> None:
    """Otherwise it would be sent for ever: a message that is too large ends the stream, and is sent again on the next
    one."""
    outbox = Outbox(lambda: None, lambda: None)
    port = OutPort(outbox, "run", (1, 1), b"")
    race = port.send(_ignore).race
    race.losers.extend([NAME] * 20_000)
    port.send(_ignore).complete_step.step_id = "small"
    [message] = outbox.take()
    [run] = pb.SessionRequest.FromString(message).runs
    assert [operation.complete_step.step_id for operation in run.operations] == ["small"]
    [answer] = outbox.take_refusals()
    assert answer.id == 1
    assert "race" in answer.refused.message
    assert "MESSAGE_HARD_BYTES" in answer.refused.message

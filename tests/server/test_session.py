"""The session, spoken by hand: hello, task, operations, acknowledgements, goodbye, and everything again after a cut."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument, PreconditionFailed
from kagzi.core.records import ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunKey
from kagzi.core.run.outcomes import LeaseLost, NotParked, Recorded
from kagzi.core.states import StepKind, StepStatus
from kagzi.server.app import Server
from kagzi.server.grpc.session import Outlet
from kagzi.system import SystemClock
from kagzi.v1 import admin_pb2, common_pb2, worker_pb2, workflow_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.status import from_rpc_error
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload

WORKER_ID = "0191e000-0000-4000-8000-00000000000a"


class Spoken:
    """A raw stream. Answers are kept until somebody asks for them."""

    def __init__(self, stubs: Stubs) -> None:
        self._call = stubs.workers.Session(timeout=TIMEOUT_S)
        self._operations = 0
        self.sent: list[pb.SessionRequest] = []
        self.received = pb.SessionResponse()

    async def send(self, **fields: Any) -> None:
        request = pb.SessionRequest(**fields)
        self.sent.append(request)
        await self._call.write(request)

    async def hello(self, *, leased: list[pb.LeasedRun] | None = None, max_concurrent: int = 10) -> pb.SessionWelcome:
        register = pb.RegisterRequest(workflow_types=["greet"], worker_id=WORKER_ID, max_concurrent=max_concurrent)
        await self.send(hello=pb.SessionHello(register=register, leased=leased))
        await self.until(lambda received: received.HasField("welcome"))
        return self.received.welcome

    async def until(self, enough: Callable[[pb.SessionResponse], bool]) -> pb.SessionResponse:
        async with asyncio.timeout(TIMEOUT_S):
            while not enough(self.received):
                answer = await self._call.read()
                assert answer is not grpc.aio.EOF, f"the stream ended; heard so far:\n{self.received}"
                self.received.MergeFrom(answer)
        return self.received

    async def task(self) -> pb.Task:
        received = await self.until(lambda received: len(received.tasks) > 0)
        task = received.tasks.pop(0)
        await self.send(received=[pb.LeasedRun(run_id=task.run_id, lease=task.lease)])
        return task

    def operation(self, **kind: Any) -> pb.Operation:
        self._operations += 1
        return pb.Operation(id=self._operations, **kind)

    async def operate(self, task: pb.Task, *operations: pb.Operation) -> None:
        await self.send(runs=[pb.RunOperations(run_id=task.run_id, lease=task.lease, operations=operations)])

    async def acknowledged(self, *ids: int) -> dict[int, int]:
        """The seqs of these operations, once all are acknowledged."""
        await self.until(lambda received: set(ids) <= set(self._seqs(received)))
        return {key: seq for key, seq in self._seqs(self.received).items() if key in ids}

    async def answer(self, operation_id: int) -> pb.OperationAnswer:
        await self.until(lambda received: any(answer.id == operation_id for answer in received.answers))
        return next(answer for answer in self.received.answers if answer.id == operation_id)

    async def until_closed(self) -> grpc.StatusCode:
        """Half-closes, reads to the end, and answers the status."""
        await self._call.done_writing()
        async with asyncio.timeout(TIMEOUT_S):
            try:
                while (answer := await self._call.read()) is not grpc.aio.EOF:
                    self.received.MergeFrom(answer)
            except grpc.aio.AioRpcError as error:
                return error.code()
        return grpc.StatusCode.OK  # a stream that ends otherwise does so with an error

    def break_off(self) -> None:
        self._call.cancel()

    async def error(self) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await self.until(lambda received: False)
        return failure.value

    @staticmethod
    def _seqs(received: pb.SessionResponse) -> dict[int, int]:
        return {key: seq for part in received.acknowledged for key, seq in zip(part.ids, part.seqs, strict=True)}


def begin(step_id: str) -> dict[str, Any]:
    return {"begin_step": pb.BeginStepOperation(step_id=step_id, attempt=1)}


def complete(step_id: str, output: str) -> dict[str, Any]:
    return {"complete_step": pb.CompleteStepOperation(step_id=step_id, attempt=1, output=json_payload(output))}


async def test_a_run_from_hello_to_goodbye(stubs: Stubs, lease_ms: int) -> None:
    session = Spoken(stubs)
    welcome = await session.hello()
    assert welcome.worker_id == WORKER_ID
    assert welcome.lease_ms == lease_ms
    assert welcome.now_us > 0
    started = await stubs.start(input=json_payload('"world"'))
    task = await session.task()
    assert (task.run_id, task.input.data) == (started.run_id, b'"world"')

    first = [session.operation(**begin("a")), session.operation(**complete("a", "1"))]
    await session.operate(task, *first)
    seqs = await session.acknowledged(1, 2)
    assert 0 < seqs[1] < seqs[2]
    end = session.operation(complete_run=pb.CompleteRunOperation(output=json_payload('"hi"')))
    await session.operate(task, end)
    assert (await session.answer(3)).closed.status == workflow_pb2.WORKFLOW_STATUS_COMPLETED
    await session.send(update=pb.SessionUpdate(completed_delta=1, goodbye=True))
    assert await session.until_closed() is grpc.StatusCode.OK

    assert (await stubs.get(task.run_id)).output.data == b'"hi"'
    worker = await stubs.admin.GetWorker(admin_pb2.GetWorkerRequest(worker_id=WORKER_ID), timeout=TIMEOUT_S)
    assert worker.worker.status == worker_pb2.WORKER_STATUS_OFFLINE


async def test_many_runs_of_one_message_are_answered_each_on_its_own(stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello(max_concurrent=20)
    for _ in range(20):
        await stubs.start()
    tasks = [await session.task() for _ in range(20)]
    operations = [
        pb.RunOperations(
            run_id=task.run_id,
            lease=task.lease,
            operations=[session.operation(**begin("a")), session.operation(**complete("a", "1"))],
        )
        for task in tasks
    ]
    operations[7].lease.counter += 1  # a stale lease among the good ones
    await session.send(runs=operations)
    refused = [15, 16]
    await session.acknowledged(*(key for key in range(1, 41) if key not in refused))
    for key in refused:
        assert (await session.answer(key)).refused.code == common_pb2.ERROR_CODE_LEASE_LOST


async def test_everything_unacknowledged_is_sent_again_byte_for_byte(stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    await session.operate(task, session.operation(**begin("a")), session.operation(**complete("a", "1")))
    seqs = await session.acknowledged(1, 2)
    session.break_off()

    again = Spoken(stubs)
    welcome = await again.hello(leased=[pb.LeasedRun(run_id=task.run_id, lease=task.lease)])
    assert not welcome.lost
    await again.send(runs=session.sent[-1].runs)
    assert await again.acknowledged(1, 2) == seqs
    await again.operate(task, pb.Operation(id=3, complete_run=pb.CompleteRunOperation(output=json_payload("2"))))
    assert (await again.answer(3)).closed.status == workflow_pb2.WORKFLOW_STATUS_COMPLETED
    steps = await stubs.admin.ListSteps(admin_pb2.ListStepsRequest(run_id=task.run_id), timeout=TIMEOUT_S)
    assert [(step.step_id, step.seq) for step in steps.steps] == [("a", seqs[2])]


async def test_a_session_that_breaks_off_passes_its_runs_to_others(stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    await session.operate(task, session.operation(**begin("a")), session.operation(**complete("a", "1")))
    await session.acknowledged(1, 2)
    session.break_off()
    other = await stubs.register()
    taken = await stubs.poll(other)
    assert taken.run_id == task.run_id
    assert taken.lease.counter == task.lease.counter + 1
    assert [step.output.data for step in taken.tasks[0].history.steps] == [b"1"]

    late = Spoken(stubs)
    welcome = await late.hello(leased=[pb.LeasedRun(run_id=task.run_id, lease=task.lease)])
    assert [lost.run_id for lost in welcome.lost] == [task.run_id]
    await late.operate(task, pb.Operation(id=9, **complete("b", "2")))
    assert (await late.answer(9)).refused.code == common_pb2.ERROR_CODE_LEASE_LOST


async def test_sleep_park_and_wake(stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    await session.operate(task, session.operation(sleep=pb.SleepOperation(step_id="nap", duration_us=2_000_000)))
    timer = (await session.answer(1)).timer
    assert 0 < timer.remaining_us <= 2_000_000
    await session.operate(task, session.operation(park=pb.ParkOperation(waits=["nap"], known_seq=task.last_seq + 1)))
    parked = await session.answer(2)
    assert parked.parked.wake_at_us == timer.wake_at_us
    woken = await session.task()
    assert woken.run_id == task.run_id
    assert woken.history.steps[0].status == worker_pb2.STEP_STATUS_COMPLETED


async def test_cancellation_reaches_the_holder(stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    request = workflow_pb2.CancelWorkflowRequest(run_id=task.run_id, reason="enough")
    await stubs.workflows.CancelWorkflow(request, timeout=TIMEOUT_S)
    received = await session.until(lambda received: len(received.notices) > 0)
    notice = received.notices[0]
    assert (notice.run_id, notice.reason) == (task.run_id, "enough")
    assert notice.kind == worker_pb2.RUN_NOTICE_KIND_CANCEL_REQUESTED
    error = common_pb2.ErrorDetail(code=common_pb2.ERROR_CODE_CANCELLED, message="enough")
    await session.operate(task, session.operation(cancel_run=pb.CancelRunOperation(error=error)))
    assert (await session.answer(1)).closed.status == workflow_pb2.WORKFLOW_STATUS_CANCELLED


@pytest.mark.parametrize("lease_ms", [4_000])
async def test_heartbeats_keep_a_run_past_its_lease(stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    mine = pb.LeasedRun(run_id=task.run_id, lease=task.lease)
    stale = pb.LeasedRun(run_id=task.run_id, lease=common_pb2.Lease(counter=77, nonce=1))
    await session.send(heartbeat=[mine, stale])
    received = await session.until(lambda received: len(received.notices) > 0)
    assert received.notices[0].kind == worker_pb2.RUN_NOTICE_KIND_LEASE_LOST
    assert received.notices[0].lease.counter == 77
    for _ in range(50):  # 5 s against a lease of 4 s: real time is the subject
        await asyncio.sleep(0.1)
        await session.send(heartbeat=[mine])
    await session.operate(task, session.operation(**begin("a")), session.operation(**complete("a", "1")))
    await session.acknowledged(1, 2)


async def test_operations_of_later_versions_are_refused_one_by_one(memory_stubs: Stubs) -> None:
    session = Spoken(memory_stubs)
    await session.hello()
    await memory_stubs.start()
    task = await session.task()
    await session.operate(
        task,
        session.operation(),  # of a kind that this server cannot read
        session.operation(**begin("a")),
    )
    assert (await session.answer(1)).refused.code == common_pb2.ERROR_CODE_UNIMPLEMENTED
    await session.acknowledged(2)


async def test_the_first_message_is_hello_and_only_the_first(memory_stubs: Stubs) -> None:
    rude = Spoken(memory_stubs)
    await rude.send(update=pb.SessionUpdate(drain=True))
    failure = await rude.error()
    assert isinstance(from_rpc_error(failure), InvalidArgument)
    twice = Spoken(memory_stubs)
    await twice.hello()
    await twice.send(hello=pb.SessionHello())
    assert isinstance(from_rpc_error(await twice.error()), InvalidArgument)


async def test_an_empty_stream_is_refused_too(memory_stubs: Stubs) -> None:
    silent = Spoken(memory_stubs)
    assert await silent.until_closed() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_second_session_of_a_worker_takes_the_place_of_the_first(memory_stubs: Stubs) -> None:
    first = Spoken(memory_stubs)
    await first.hello()
    second = Spoken(memory_stubs)
    await second.hello()
    await first.send(heartbeat=[])
    assert isinstance(from_rpc_error(await first.error()), PreconditionFailed)
    await memory_stubs.start()
    assert (await second.task()).run_id


async def test_a_draining_worker_gets_no_more_runs(memory_stubs: Stubs) -> None:
    session = Spoken(memory_stubs)
    await session.hello()
    await session.send(update=pb.SessionUpdate(drain=True))
    await memory_stubs.start("greet", workflow_id="later")
    other = await memory_stubs.register()
    assert (await memory_stubs.poll(other)).tasks[0].workflow_id == "later"
    assert not session.received.tasks


async def test_a_server_that_stops_closes_the_stream_in_order(server: Server, stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    await session.operate(task, session.operation(**begin("a")), session.operation(**complete("a", "1")))
    await session.acknowledged(1, 2)
    stopping = asyncio.ensure_future(server.stop())
    await session.until(lambda received: received.notice.server_stopping)
    assert await session.until_closed() is grpc.StatusCode.OK
    await stopping


async def test_a_worker_that_has_finished_sending_gets_every_answer(stubs: Stubs) -> None:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    await session.operate(task, session.operation(**begin("a")), session.operation(**complete("a", "1")))
    assert await session.until_closed() is grpc.StatusCode.OK
    assert set(await session.acknowledged(1, 2)) == {1, 2}


async def test_the_stream_of_a_stopping_server_closes_only_when_everything_is_answered() -> None:
    outlet = Outlet(SystemClock())
    written: list[pb.SessionResponse] = []

    async def write(data: bytes) -> None:
        written.append(pb.SessionResponse.FromString(data))

    delivering = asyncio.ensure_future(outlet.outbound.deliver(write))
    outlet.add_operations(2)
    outlet.stopping()
    outlet.answers([(1, Recorded(1, 100))])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not delivering.done()
    outlet.answers([(2, LeaseLost())])
    await asyncio.wait_for(delivering, TIMEOUT_S)
    assert written[0].notice.server_stopping
    assert [list(part.ids) for answer in written for part in answer.acknowledged] == [[1]]
    assert [part.id for answer in written for part in answer.answers] == [2]


async def test_messages_are_split_at_the_soft_limit() -> None:
    outlet = Outlet(SystemClock())
    written: list[bytes] = []

    async def write(data: bytes) -> None:
        written.append(data)

    step = HistoryStep(
        step_id="a",
        kind=StepKind.FUNCTION,
        status=StepStatus.COMPLETED,
        begun_seq=1,
        output=Payload(b"x" * (limits.MESSAGE_SOFT_BYTES // 3)),
    )
    outlet.answers([(number, NotParked(100, (step,))) for number in range(2)])
    outlet.answers([(number, NotParked(100, (step,))) for number in range(2, 4)])
    outlet.tasks([claimed(number, step) for number in range(6)])
    outlet.outbound.finish()
    await asyncio.wait_for(outlet.outbound.deliver(write), TIMEOUT_S)
    received = [pb.SessionResponse.FromString(data) for data in written]
    assert [answer.id for part in received for answer in part.answers] == [0, 1, 2, 3]
    assert [task.run_id for part in received for task in part.tasks] == [str(number) for number in range(6)]
    assert max(len(data) for data in written) < 1.5 * limits.MESSAGE_SOFT_BYTES


def claimed(number: int, step: HistoryStep) -> ClaimedRun:
    return ClaimedRun(
        run=RunKey("default", str(number)),
        lease=Lease(1, 1),
        worker_id="w",
        workflow_id="w",
        workflow_type="t",
        version="1",
        attempt=1,
        input=None,
        created_at=1,
        claimed_at=1,
        history=HistoryPage((step,)),
    )

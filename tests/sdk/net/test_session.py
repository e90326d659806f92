"""The session: tasks in, operations out, whatever happens to the server in between."""

import asyncio

import grpc.aio
import pytest

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument, LeaseLost, Unavailable
from kagzi.v1 import common_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_executor import Answers
from tests.sdk.net.fake_server import WAIT_S, FakeServer, FakeSession, lease, task
from tests.sdk.net.session_kit import REGISTER, Worker, step, welcomed


async def again(server: FakeServer, **options: tuple[pb.LeasedRun, ...]) -> tuple[FakeSession, pb.SessionRequest]:
    """The stream after the present one was broken off."""
    return await server.session(**options)  # type: ignore[arg-type]


async def test_a_task_is_accepted_and_receipted(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1"), task("r2")])
    executions = await worker.executor.accepted(2)
    assert [each.task.run_id for each in executions] == ["r1", "r2"]
    receipt = await stream.next(lambda request: request.received)
    assert [leased.run_id for leased in receipt.received] == ["r1", "r2"]
    assert receipt.received[0].lease == lease()


async def test_a_task_that_is_held_already_is_not_accepted_twice(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1")])
    stream.say(tasks=[task("r1"), task("r2")])
    executions = await worker.executor.accepted(2)
    assert [each.task.run_id for each in executions] == ["r1", "r2"]


async def test_a_run_claimed_anew_replaces_the_old_claim(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1", counter=1)])
    stream.say(tasks=[task("r1", counter=2)])
    old, new = await worker.executor.accepted(2)
    assert old.abandoned == ["the run was claimed again"]
    assert not new.abandoned


async def test_operations_of_one_pass_are_one_message_and_answers_come_back(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task(f"r{n}") for n in range(100)])
    await worker.executor.accepted(100)
    await stream.next(lambda request: request.received)
    answers = Answers()
    for n in range(100):
        step("s", answers, worker, n)
    request = await stream.next(lambda request: request.runs)
    assert len(request.runs) == 100
    stream.acknowledge(*(run.operations[0] for run in request.runs), first_seq=5, at_us=42)
    got = [await answers.next() for _ in range(100)]
    assert [answer.seq for answer in got] == list(range(5, 105))
    assert got[0].at_us == 42
    assert got[0].detail is None


async def test_an_announcement_leaves_by_itself_within_milliseconds(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    execution.port.announce().begin_step.step_id = "s"
    (operation,) = await stream.operations(1)
    assert operation.begin_step.step_id == "s"


async def test_what_was_not_answered_is_sent_again_byte_for_byte(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1"), task("r2")])
    await worker.executor.accepted(2)
    answers = Answers()
    step("a", answers, worker, 0)
    (first,) = await stream.operations(1)
    step("b", answers, worker, 0)
    step("c", answers, worker, 1)
    both = await stream.operations(2)
    stream.acknowledge(first)
    await answers.next()
    sent = [raw for raw in stream.raw if pb.SessionRequest.FromString(raw).runs]
    stream.hang_up()

    stream, hello = await again(server)
    assert hello.hello.register == REGISTER
    assert sorted(leased.run_id for leased in hello.hello.leased) == ["r1", "r2"]
    assert await stream.operations(2) == both
    repeated = [raw for raw in stream.raw if pb.SessionRequest.FromString(raw).runs]
    assert repeated == [raw for raw in sent if b"\x0a\x01a" not in raw]
    stream.acknowledge(*both, first_seq=2)
    assert [(await answers.next()).seq, (await answers.next()).seq] == [2, 3]


async def test_what_is_written_to_a_stream_that_has_just_ended_is_sent_again(
    server: FakeServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC knows that the stream has ended a moment before its reader does."""
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    await worker.executor.accepted(1)
    await stream.next(lambda request: request.received)
    answers, written = Answers(), asyncio.Event()

    async def write(_call: object, _data: bytes) -> None:
        written.set()
        stream.hang_up()
        raise asyncio.InvalidStateError("RPC already finished.")

    with monkeypatch.context() as patched:
        patched.setattr(grpc.aio._call.StreamStreamCall, "write", write)
        step("a", answers, worker)
        async with asyncio.timeout(WAIT_S):
            await written.wait()
    stream, _hello = await again(server)
    (operation,) = await stream.operations(1)
    stream.acknowledge(operation)
    assert (await answers.next()).seq == 1


async def test_operations_made_while_the_server_is_away_arrive_later_in_order(
    server: FakeServer, worker: Worker
) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    await worker.executor.accepted(1)
    answers = Answers()
    step("a", answers, worker)
    await stream.operations(1)
    await server.stop()
    step("b", answers, worker)
    await asyncio.sleep(0.1)  # long enough for a few vain attempts
    step("c", answers, worker)
    await server.start()
    stream, _ = await again(server)
    operations = await stream.operations(3)
    assert [operation.complete_step.step_id for operation in operations] == ["a", "b", "c"]
    assert [operation.id for operation in operations] == [1, 2, 3]


async def test_a_repeated_answer_is_ignored(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    await worker.executor.accepted(1)
    answers = Answers()
    step("a", answers, worker)
    (first,) = await stream.operations(1)
    stream.acknowledge(first)
    stream.acknowledge(first)
    step("b", answers, worker)
    (second,) = await stream.operations(1)
    stream.acknowledge(second, first_seq=2)
    assert [(await answers.next()).seq, (await answers.next()).seq] == [1, 2]


async def test_mixed_answers_come_in_the_order_of_their_seqs(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    await worker.executor.accepted(1)
    answers = Answers()
    for name in ("a", "b", "c"):
        step(name, answers, worker)
    a, b, c = await stream.operations(3)
    stream.say(
        acknowledged=[pb.Acknowledged(at_us=1, ids=[a.id, c.id], seqs=[1, 3])],
        answers=[pb.OperationAnswer(id=b.id, seq=2, retry=pb.RetryScheduled(next_attempt=2))],
    )
    assert [(await answers.next()).seq for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    "code", [common_pb2.ERROR_CODE_LEASE_LOST, common_pb2.ERROR_CODE_NOT_FOUND, common_pb2.ERROR_CODE_TIMEOUT]
)
async def test_a_run_that_is_gone_is_abandoned_once(
    server: FakeServer, worker: Worker, code: common_pb2.ErrorCode
) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    answers = Answers()
    step("a", answers, worker)
    step("b", answers, worker)
    operations = await stream.operations(2)
    refused = common_pb2.ErrorDetail(code=code, message="gone")
    stream.say(answers=[pb.OperationAnswer(id=each.id, refused=refused) for each in operations])
    async with asyncio.timeout(WAIT_S):
        await worker.executor.drained()
    assert execution.abandoned == ["gone"]
    assert answers.seen.empty()
    assert not len(worker.session.leased)


async def test_other_refusals_are_the_runners_affair(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    answers = Answers()
    step("a", answers, worker)
    (operation,) = await stream.operations(1)
    refused = common_pb2.ErrorDetail(code=common_pb2.ERROR_CODE_INVALID_ARGUMENT, message="too big")
    stream.say(answers=[pb.OperationAnswer(id=operation.id, refused=refused)])
    answer = await answers.next()
    assert answer.detail is not None
    assert answer.detail.refused.message == "too big"
    assert not execution.abandoned


async def test_an_announcement_that_can_never_be_accepted_fails_the_run(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    execution.port.announce().begin_step.step_id = "s"
    (operation,) = await stream.operations(1)
    refused = common_pb2.ErrorDetail(code=common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED, message="50,000 steps")
    stream.say(answers=[pb.OperationAnswer(id=operation.id, refused=refused)])
    (failure,) = await stream.operations(1)
    assert failure.fail_run.error == refused
    assert execution.abandoned == ["50,000 steps"]


async def test_an_announcement_that_the_server_failed_on_hands_the_run_back(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    execution.port.announce().begin_step.step_id = "s"
    (operation,) = await stream.operations(1)
    refused = common_pb2.ErrorDetail(code=common_pb2.ERROR_CODE_INTERNAL, message="incident 4711")
    stream.say(answers=[pb.OperationAnswer(id=operation.id, refused=refused)])
    (release,) = await stream.operations(1)
    assert release.WhichOneof("kind") == "release"
    assert (execution.server_failures, execution.abandoned) == (["incident 4711"], [])


async def test_what_the_server_could_not_record_now_is_sent_again(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    await worker.executor.accepted(1)
    answers = Answers()
    step("a", answers, worker)
    (operation,) = await stream.operations(1)
    refused = common_pb2.ErrorDetail(code=common_pb2.ERROR_CODE_UNAVAILABLE, message="the store is away")
    stream.say(answers=[pb.OperationAnswer(id=operation.id, refused=refused)])
    stream, _ = await again(server)
    (repeated,) = await stream.operations(1)
    assert repeated == operation
    stream.acknowledge(repeated)
    assert (await answers.next()).seq == 1


async def test_what_was_lost_meanwhile_is_abandoned_at_the_welcome(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1"), task("r2")])
    first, second = await worker.executor.accepted(2)
    stream.hang_up()
    await again(server, lost=(pb.LeasedRun(run_id="r1", lease=lease()),))
    async with asyncio.timeout(WAIT_S):
        await worker.executor.until(lambda: first.abandoned)
    assert not second.abandoned


async def test_heartbeats_name_what_is_held(server: FakeServer, worker: Worker) -> None:
    server.heartbeat_ms = 20
    stream = await welcomed(worker, server)
    idle = await stream.next(lambda request: request.HasField("update"))
    assert not idle.heartbeat
    stream.say(tasks=[task("r1")])
    beat = await stream.next(lambda request: request.heartbeat)
    assert [(leased.run_id, leased.lease) for leased in beat.heartbeat] == [("r1", lease())]
    (execution,) = worker.executor.executions
    execution.port.send(lambda _: execution.close()).complete_run.output.data = b"1"
    (operation,) = await stream.operations(1)
    closed = pb.RunClosed(status=wf.WORKFLOW_STATUS_COMPLETED)
    stream.say(answers=[pb.OperationAnswer(id=operation.id, seq=1, closed=closed)])
    last = await stream.next(lambda request: request.update.completed_delta)
    assert (last.update.completed_delta, last.update.failed_delta) == (1, 0)


async def test_draining_is_said_again_after_a_reconnect(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    worker.session.drain()
    await stream.next(lambda request: request.update.drain)
    stream.hang_up()
    stream, _ = await again(server)
    await stream.next(lambda request: request.update.drain)


async def test_a_server_that_wants_the_worker_drained(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(notice=pb.SessionNotice(should_drain=True))
    await stream.next(lambda request: request.update.drain)
    assert worker.drains == 1


async def test_a_stopping_server_is_left_and_its_last_answers_are_taken(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    await worker.executor.accepted(1)
    answers = Answers()
    step("a", answers, worker)
    (operation,) = await stream.operations(1)
    stream.say(notice=pb.SessionNotice(server_stopping=True))
    stream.acknowledge(operation)
    assert (await answers.next()).seq == 1
    stream.hang_up()
    stream, hello = await again(server)
    assert [leased.run_id for leased in hello.hello.leased] == ["r1"]


async def test_goodbye(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    leaving = asyncio.create_task(worker.session.leave())
    await stream.next(lambda request: request.update.goodbye)
    async with asyncio.timeout(WAIT_S):
        await leaving
        await stream.ended.wait()


async def test_a_worker_that_is_refused_learns_why_at_once(server: FakeServer, worker: Worker) -> None:
    starting = asyncio.create_task(worker.session.start())
    stream, _ = await server.session(welcome=False)
    stream.refuse(InvalidArgument("served: no types"))
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(InvalidArgument, match="no types"):
            await starting


async def test_a_server_that_never_welcomes_is_given_up(server: FakeServer, worker: Worker) -> None:
    with pytest.raises(Unavailable, match="did not accept"):
        await worker.session.start(timeout_s=0.1)


async def test_the_rest_of_a_history_is_fetched_and_resumed(server: FakeServer, worker: Worker) -> None:
    def pages(request: pb.GetHistoryRequest) -> list[pb.HistoryPage | None]:
        if request.after == 2:
            return [pb.HistoryPage(steps=[pb.HistoryStep(step_id="b")], has_more=True, next_after=5), None]
        return [pb.HistoryPage(steps=[pb.HistoryStep(step_id="c")])]

    server.answers["GetHistory"] = pages
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    steps = await execution.port.fetch_history(2)
    assert [each.step_id for each in steps] == ["b", "c"]
    first, second = server.requests("GetHistory")
    assert (first.after, second.after, first.lease) == (2, 5, lease())


async def test_a_history_of_a_lost_run_is_refused(server: FakeServer, worker: Worker) -> None:
    def pages(request: pb.GetHistoryRequest) -> list[pb.HistoryPage]:
        raise LeaseLost("taken over")

    server.answers["GetHistory"] = pages
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    with pytest.raises(LeaseLost):
        await execution.port.fetch_history(0)


async def test_an_answer_that_is_too_large_costs_its_run_and_not_the_others(
    server: FakeServer, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that does not cut its answers. The stream breaks; whose answer it is shows when messages are sent again
    one by one."""
    too_large = pb.Fetched(results=[pb.HistoryStep(output=common_pb2.Payload(data=b"x" * limits.MESSAGE_READ_BYTES))])
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("small"), task("large")])
    small, large = await worker.executor.accepted(2)
    answers = Answers()
    large.port.send(answers).fetch_results.known_seq = 0
    [fetch] = await stream.operations(1)
    step("s", answers, worker, 0)
    stream.say(answers=[pb.OperationAnswer(id=fetch.id, fetched=too_large)])
    stream, _ = await again(server)
    [fetched_again] = await stream.operations(1)
    assert fetched_again.id == fetch.id
    stream.say(answers=[pb.OperationAnswer(id=fetch.id, fetched=too_large)])
    stream, hello = await again(server)
    assert [leased.run_id for leased in hello.hello.leased] == ["small"]
    [other] = await stream.operations(1)
    stream.acknowledge(other)
    assert (await answers.next()).seq == 1
    assert large.abandoned == ["a response was too large to be read"]
    assert not small.abandoned
    assert any("run large" in message for message in caplog.messages)

"""A completion takes the begin of its step along if that has not left: one operation, in the place of the begin. For a
server that does not know such operations they stay two, and become two again if they were one."""

import asyncio
from functools import partial

import pytest

from kagzi.sdk.transport.address import parse_address
from kagzi.sdk.transport.connection import Connection
from kagzi.sdk.worker.outbox import OutPort
from kagzi.sdk.worker.session import Session
from kagzi.system import SystemClock, SystemRng
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.enums import RECORD_STEP
from tests.sdk.net.fake_executor import Answers, FakeExecutor
from tests.sdk.net.fake_server import FakeServer, task
from tests.sdk.net.session_kit import REGISTER
from tests.sdk.net.test_outbox import Woken, ignore


def recording_whole() -> Woken:
    woken = Woken()
    woken.outbox.records_whole_steps = True
    return woken


def fill(step_id: str, operation: pb.Operation) -> None:
    operation.begin_step.step_id = step_id
    operation.begin_step.attempt = 1
    operation.begin_step.parallel_group_id = "all"


def begin(port: OutPort, step_id: str) -> None:
    port.begin(step_id, partial(fill, step_id))


def complete(port: OutPort, step_id: str, output: bytes = b"1", on_answer: Answers | None = None) -> bool:
    operation, whole = port.complete(step_id, on_answer or ignore)
    if whole:
        record = operation.record_step
        record.step_id, record.attempt, record.parallel_group_id = step_id, 1, "all"
        record.output.data = output
    else:
        operation.complete_step.step_id, operation.complete_step.attempt = step_id, 1
        operation.complete_step.output.data = output
    return whole


def kinds(messages: list[bytes]) -> list[str]:
    operations = [
        each for message in messages for run in pb.SessionRequest.FromString(message).runs for each in run.operations
    ]
    return [_word(each) for each in operations]


def _word(operation: pb.Operation) -> str:
    kind = operation.WhichOneof("kind")
    assert kind is not None, "an operation that nobody filled in"
    name = {"begin_step": "begin", "complete_step": "complete", "record_step": "record"}.get(kind, kind)
    return f"{name} {getattr(getattr(operation, kind), 'step_id', '')}".strip()


def test_a_begin_that_has_not_left_takes_the_result_along() -> None:
    woken = recording_whole()
    port = woken.port()
    begin(port, "a")
    assert (woken.wakes, woken.holds) == (0, 1)
    assert complete(port, "a")
    assert woken.wakes == 1
    messages = woken.outbox.take()
    assert kinds(messages) == ["record a"]
    [message] = woken.outbox.unanswered()
    assert message.unanswered == 1, "one answer for both"


def test_a_begin_that_is_held_long_enough_leaves_alone() -> None:
    woken = recording_whole()
    port = woken.port()
    begin(port, "a")
    woken.outbox.release_waiting()
    assert kinds(woken.outbox.take()) == ["begin a"]
    assert not complete(port, "a")
    assert kinds(woken.outbox.take()) == ["complete a"]


def test_steps_side_by_side_keep_the_order_of_their_begins() -> None:
    woken = recording_whole()
    port = woken.port()
    begin(port, "old")
    woken.outbox.release_waiting()
    woken.outbox.take()
    for step_id in "abc":
        begin(port, step_id)
    assert complete(port, "b")
    assert not complete(port, "old")
    assert complete(port, "a")
    assert kinds(woken.outbox.take()) == ["record a", "record b", "begin c", "complete old"]
    assert not complete(port, "c")


@pytest.mark.parametrize("announced", [True, False])
def test_nothing_else_is_overtaken(announced: bool) -> None:
    """A heartbeat, a race, a patch, a status: what follows a begin stays before the completion."""
    woken = recording_whole()
    port = woken.port()
    begin(port, "a")
    other = port.announce() if announced else port.send(ignore)
    other.step_heartbeat.step_id = "a"
    begin(port, "b")
    assert not complete(port, "a")
    assert complete(port, "b")
    assert kinds(woken.outbox.take()) == ["begin a", "step_heartbeat a", "record b", "complete a"]


def test_for_an_older_server_they_stay_two() -> None:
    woken = Woken()
    port = woken.port()
    begin(port, "a")
    assert not complete(port, "a")
    assert kinds(woken.outbox.take()) == ["begin a", "complete a"]


def test_both_numbers_are_the_workers_own() -> None:
    port = recording_whole().port()
    port.acknowledged(2, 2)
    port.acknowledged(3)
    port.acknowledged(5, 2)
    assert (port.last_seq, port.foreign_seq) == (5, 0)
    port.acknowledged(8, 2)
    assert (port.last_seq, port.foreign_seq) == (8, 6), "somebody else took number 6"


def test_what_a_lost_run_had_begun_is_forgotten() -> None:
    woken = recording_whole()
    port = woken.port()
    begin(port, "a")
    woken.outbox.drop(port)
    assert not complete(port, "a")
    assert kinds(woken.outbox.take()) == ["complete a"]


def test_what_is_kept_and_what_waits_becomes_two_again_for_an_older_server() -> None:
    woken = recording_whole()
    answered, sent, unsent = woken.port("answered"), woken.port("sent"), woken.port("unsent")
    for port in (answered, sent):
        begin(port, "a")
        complete(port, "a")
    woken.outbox.take()
    woken.outbox.answered(1)
    begin(unsent, "a")
    complete(unsent, "a")
    begin(unsent, "b")
    woken.outbox.records_whole_steps = False
    [message] = woken.outbox.unanswered()
    assert kinds([message.data]) == ["begin a", "complete a"] * 2
    request = pb.SessionRequest.FromString(message.data)
    begun, completed = request.runs[1].operations
    assert (begun.begin_step.attempt, begun.begin_step.parallel_group_id) == (1, "all")
    assert begun.begin_step == pb.BeginStepOperation(step_id="a", attempt=1, parallel_group_id="all")
    assert completed.complete_step.output.data == b"1"
    assert message.unanswered == 2
    for operation in (begun, completed):
        half = woken.outbox.answered(operation.id)
        assert half is not None
        assert half.numbers == 1
    assert woken.outbox.unanswered() == []
    messages = woken.outbox.take()
    assert kinds(messages) == ["begin a", "complete a", "begin b"]
    ids = [each.id for each in pb.SessionRequest.FromString(messages[0]).runs[0].operations]
    assert all(woken.outbox.answered(number) is not None for number in ids)
    assert woken.outbox.unanswered() == []


async def test_a_worker_that_comes_to_an_older_server_says_it_in_two(server: FakeServer, other: FakeServer) -> None:
    server.features = (RECORD_STEP,)
    addresses = parse_address(f"{server.address},{other.address}", {})
    connection = Connection(addresses, tls=None, api_key=None, clock=SystemClock(), rng=SystemRng())
    executor = FakeExecutor()
    await connection.open()
    session = Session(connection, REGISTER, executor, on_welcome=lambda _: None, on_drain=lambda: None)
    try:
        starting = asyncio.create_task(session.start())
        stream, _ = await server.session()
        await starting
        stream.say(tasks=[task()])
        (execution,) = await executor.accepted(1)
        assert isinstance(execution.port, OutPort)
        answers = Answers()
        begin(execution.port, "a")
        complete(execution.port, "a", on_answer=answers)
        [whole] = await stream.operations(1)
        assert _word(whole) == "record a"
        await server.stop()

        stream, _ = await other.session()
        operations = await stream.operations(2)
        assert [_word(each) for each in operations] == ["begin a", "complete a"]
        stream.acknowledge(*operations)
        assert (await answers.next()).seq == 2
        begin(execution.port, "b")
        assert not complete(execution.port, "b")
    finally:
        await session.close()
        await connection.close()

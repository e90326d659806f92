"""Worker: what may be said about one, and its life from welcome to goodbye."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kagzi.core.errors import InvalidArgument, PreconditionFailed, Unavailable
from kagzi.sdk.worker.build_id import default_build_id
from kagzi.sdk.worker.worker import Worker
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.workflow import Workflow
from kagzi.v1 import worker_pb2 as pb
from tests.sdk.net.fake_server import WAIT_S, FakeServer, FakeSession, lease
from tests.sdk.net.test_connect import free_port
from tests.support.timeouts import LOADED_MACHINE_S


async def _hello(ctx: Any, name: str) -> str:
    return f"Hello, {name}!"


hello: Workflow[str, str] = Workflow(_hello, name="hello")


def hello_task(counter: int = 1) -> pb.Task:
    task = pb.Task(run_id="r1", workflow_type="hello", workflow_id="w", version="1", lease=lease(counter), attempt=1)
    task.input.data = b'"ada"'
    return task


async def entered(worker: Worker, server: FakeServer) -> tuple[FakeSession, pb.RegisterRequest]:
    entering = asyncio.create_task(worker.__aenter__())
    stream, greeting = await server.session()
    await entering
    return stream, greeting.hello.register


def test_a_worker_says_where_it_works_and_on_what() -> None:
    worker = Worker(workflows=[hello, ("bye", _hello)])
    assert worker.address is None
    elsewhere = worker.at("kagzi:50051")
    assert (elsewhere.address, worker.address) == ("kagzi:50051", None)
    assert [each.name for each in elsewhere.registered] == ["hello", "bye"]
    assert elsewhere.registered[0] is hello


async def test_both_spellings_say_the_same(server: FakeServer) -> None:
    keywords = Worker(
        server.address,
        namespace="shop",
        max_concurrent=50,
        labels={"a": "1", "version": "1.4.2"},
        hostname="rack-7",
        build_id="b-12",
        workflows=[hello, ("bye", _hello)],
    )
    fluent = Worker(server.address).namespace("shop").max_concurrent(50).label("a", "1").version("1.4.2")
    fluent = fluent.hostname("rack-7").build_id("b-12").retries(3).retry(Retry.attempts(2))
    fluent = fluent.workflows([hello, ("bye", _hello)]).build()
    reported: list[pb.RegisterRequest] = []
    for worker in (keywords, fluent):
        stream, register = await entered(worker, server)
        reported.append(register)
        leaving = asyncio.create_task(worker.__aexit__(None, None, None))
        await stream.next(lambda request: request.update.goodbye)
        await leaving
    first, second = reported
    assert first.worker_id != second.worker_id
    first.worker_id = second.worker_id
    assert first == second
    assert (first.namespace_id, first.max_concurrent) == ("shop", 50)
    assert dict(first.labels) == {"a": "1", "version": "1.4.2"}
    assert (first.hostname, first.build_id) == ("rack-7", "b-12")
    assert [(each.workflow_type, each.version) for each in first.served] == [("hello", "1"), ("bye", "1")]
    assert first.pid
    assert first.version == "0.1.0"


async def test_fluent_methods_leave_the_original_alone() -> None:
    worker = Worker("a:1")
    worker.workflows([hello])
    with pytest.raises(InvalidArgument, match="no workflows"):
        await worker.run()


def test_a_worker_without_workflows_cannot_be_built() -> None:
    with pytest.raises(InvalidArgument, match="no workflows"):
        Worker("a:1").namespace("shop").build()


@pytest.mark.parametrize("say", [lambda w: w.hostname(""), lambda w: w.version(2), lambda w: w.build_id("x" * 300)])
def test_what_cannot_be_a_name_is_refused_by_the_builder(say: Callable[[Worker], Worker]) -> None:
    with pytest.raises(InvalidArgument, match="must be a string of 1 to 256 bytes"):
        say(Worker("a:1"))


async def test_the_build_is_what_was_said_else_the_environment_else_a_hash_of_the_code(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def build(**options: Any) -> str:
        worker = Worker(server.address, workflows=[hello], **options)
        stream, register = await entered(worker, server)
        leaving = asyncio.create_task(worker.__aexit__(None, None, None))
        await stream.next(lambda request: request.update.goodbye)
        await leaving
        return register.build_id

    monkeypatch.delenv("KAGZI_BUILD_ID", raising=False)
    assert await build() == default_build_id([_hello]) != ""
    assert await build(build_id="") == ""
    monkeypatch.setenv("KAGZI_BUILD_ID", "of-the-deploy")
    assert await build() == "of-the-deploy"
    assert await build(build_id="mine") == "mine"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_concurrent": 0}, r"1\.\.10000"),
        ({"max_concurrent": True}, "whole number"),
        ({"retries": -1}, "0 .no retry. or more"),
        ({"retries": 1, "retry": Retry.none()}, "both given"),
        ({"labels": {"a": 1}}, "must both be strings"),
        ({"workflows": [hello, hello]}, "more than once"),
        ({"workflows": [_hello]}, "is not a workflow"),
        ({"shutdown_grace": "30"}, "no unit"),
        ({"retry": 3}, "is not a Retry"),
    ],
)
def test_what_cannot_work_is_refused_at_construction(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        Worker("a:1", **options)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="concurrency"):
        Worker("a:1", concurrency=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def test_nobody_there_is_told_within_seconds() -> None:
    address = f"127.0.0.1:{free_port()}"
    async with asyncio.timeout(LOADED_MACHINE_S):
        with pytest.raises(Unavailable, match=f"{address}: connection refused.*Start the server"):
            await Worker(address, workflows=[hello]).run()


async def test_a_worker_is_at_work_once_at_a_time(server: FakeServer) -> None:
    worker = Worker(server.address, workflows=[hello])
    stream, _ = await entered(worker, server)
    with pytest.raises(PreconditionFailed, match="already running"):
        await worker.__aenter__()
    leaving = asyncio.create_task(worker.__aexit__(None, None, None))
    await stream.next(lambda request: request.update.goodbye)
    await leaving


async def test_leaving_drains_finishes_and_says_goodbye(server: FakeServer) -> None:
    worker = Worker(server.address, workflows=[hello])
    stream, _ = await entered(worker, server)
    stream.say(tasks=[hello_task()])
    (operation,) = await stream.operations(1)
    leaving = asyncio.create_task(worker.__aexit__(None, None, None))
    await stream.next(lambda request: request.update.drain)
    assert operation.complete_run.output.data == b'"Hello, ada!"'
    assert not leaving.done()
    closed: Any = pb.RunClosed(status=4)  # type: ignore[arg-type]
    stream.say(answers=[pb.OperationAnswer(id=operation.id, seq=1, closed=closed)])
    await stream.next(lambda request: request.update.goodbye)
    async with asyncio.timeout(WAIT_S):
        await leaving


async def test_what_does_not_finish_in_time_is_handed_back(server: FakeServer) -> None:
    forever: Workflow[str, None] = Workflow(_forever, name="hello")
    worker = Worker(server.address, workflows=[forever], shutdown_grace="50ms")
    stream, _ = await entered(worker, server)
    stream.say(tasks=[hello_task()])
    await stream.next(lambda request: request.received)
    leaving = asyncio.create_task(worker.__aexit__(None, None, None))
    (operation,) = await stream.operations(1)
    assert operation.HasField("release")
    stream.acknowledge(operation)
    await stream.next(lambda request: request.update.goodbye)
    async with asyncio.timeout(WAIT_S):
        await leaving


async def _forever(ctx: Any, name: str) -> None:
    await asyncio.Event().wait()


async def test_run_ends_when_the_server_wants_the_worker_drained(server: FakeServer) -> None:
    running = asyncio.create_task(Worker(server.address, workflows=[hello]).run())
    stream, _ = await server.session()
    stream.say(notice=pb.SessionNotice(should_drain=True))
    await stream.next(lambda request: request.update.goodbye)
    async with asyncio.timeout(WAIT_S):
        await running


async def test_a_cancelled_run_says_goodbye_too(server: FakeServer) -> None:
    running = asyncio.create_task(Worker(server.address, workflows=[hello]).run())
    stream, _ = await server.session()
    await stream.next(lambda request: request.HasField("update"))
    running.cancel()
    await stream.next(lambda request: request.update.goodbye)
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_worker_refused_in_the_middle_says_why(server: FakeServer) -> None:
    running = asyncio.create_task(Worker(server.address, workflows=[hello]).run())
    stream, _ = await server.session()
    await stream.next(lambda request: request.HasField("update"))
    stream.refuse(InvalidArgument("no longer wanted"))
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(InvalidArgument, match="no longer wanted"):
            await running


# --- told to stop -----------------------------------------------------------------------------------------------------


def handlers() -> list[Any]:
    return [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]


async def goodbye(*streams: FakeSession) -> None:
    for stream in streams:
        await stream.next(lambda request: request.update.goodbye)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_drains_all_workers_that_run_and_what_handled_it_before_does_so_again(
    server: FakeServer, number: signal.Signals
) -> None:
    before = handlers()
    workers = [Worker(server.address, workflows=[hello]) for _ in range(2)]
    running: list[asyncio.Task[None]] = []
    streams: list[FakeSession] = []
    for worker in workers:
        running.append(asyncio.create_task(worker.run()))
        streams.append((await server.session())[0])
        await streams[-1].next(lambda request: request.HasField("update"))
    os.kill(os.getpid(), number)
    await goodbye(*streams)
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*running)
    assert handlers() == before


async def test_an_application_keeps_its_signals_if_it_says_so(server: FakeServer) -> None:
    before = handlers()
    worker = Worker(server.address, workflows=[hello])
    running = asyncio.create_task(worker.run(handle_signals=False))
    stream, _ = await server.session()
    await stream.next(lambda request: request.HasField("update"))
    assert handlers() == before
    worker.stop()
    await goodbye(stream)
    async with asyncio.timeout(WAIT_S):
        await running


async def test_an_application_that_takes_the_signals_later_keeps_them(server: FakeServer) -> None:
    before = handlers()
    worker = Worker(server.address, workflows=[hello])
    running = asyncio.create_task(worker.run())
    stream, _ = await server.session()
    await stream.next(lambda request: request.HasField("update"))
    assert all(ours != other for ours, other in zip(handlers(), before, strict=True))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        worker.stop()
        await goodbye(stream)
        async with asyncio.timeout(WAIT_S):
            await running
        assert handlers() == [before[0], signal.SIG_IGN]
    finally:
        signal.signal(signal.SIGTERM, before[1])


async def test_a_worker_in_another_thread_leaves_the_signals_alone(server: FakeServer) -> None:
    before = handlers()
    worker = Worker(server.address, workflows=[hello])
    inside = threading.Thread(target=worker.serve)
    inside.start()
    stream, _ = await server.session()
    await stream.next(lambda request: request.HasField("update"))
    assert handlers() == before
    stream.say(notice=pb.SessionNotice(should_drain=True))
    await goodbye(stream)
    await asyncio.to_thread(inside.join, WAIT_S)
    assert not inside.is_alive()


async def test_run_inside_the_block_drains_and_the_worker_can_be_used_again(server: FakeServer) -> None:
    worker = Worker(server.address, workflows=[hello])
    for _ in range(2):
        stream, _ = await entered(worker, server)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0)  # it runs now
        with pytest.raises(PreconditionFailed, match="runs already"):
            await worker.run()
        os.kill(os.getpid(), signal.SIGTERM)
        await goodbye(stream)
        async with asyncio.timeout(WAIT_S):
            await running
            await worker.__aexit__(None, None, None)


async def test_a_stop_may_leave_less_time_than_the_grace_but_not_more(server: FakeServer) -> None:
    forever: Workflow[str, None] = Workflow(_forever, name="hello")
    for grace, within in (("1h", "50ms"), ("50ms", "1h")):
        worker = Worker(server.address, workflows=[forever], shutdown_grace=grace)
        running = asyncio.create_task(worker.run())
        stream, _ = await server.session()
        stream.say(tasks=[hello_task()])
        await stream.next(lambda request: request.received)
        worker.stop(within)
        (operation,) = await stream.operations(1)
        assert operation.HasField("release")
        stream.acknowledge(operation)
        await goodbye(stream)
        async with asyncio.timeout(WAIT_S):
            await running


async def test_a_stop_before_the_start_is_not_forgotten(server: FakeServer) -> None:
    worker = Worker(server.address, workflows=[hello])
    worker.stop()
    async with asyncio.timeout(WAIT_S):
        await worker.run()

"""Watch: everything that happens to a run, once and in order, from any seq, on any server, until it has ended."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import grpc
import pytest

from kagzi import Context, Kagzi, NotFound, Retry, Run, RunError, Signal, Worker, workflow
from kagzi.server.app import Server
from kagzi.v1 import worker_pb2
from kagzi.v1 import workflow_pb2 as pb
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload, leased
from tests.support.timeouts import LOADED_MACHINE_S

WAIT_S = LOADED_MACHINE_S
approved = Signal("approved", str)

Event = dict[str, Any]


async def note(text: str) -> str:
    return text


@workflow
async def watched(ctx: Context, rounds: int) -> str:
    for n in range(rounds):
        await ctx.step("note").run(note, f"{n}")
    await ctx.sleep("nap", "10ms")
    ctx.set_status("waiting", progress=0.5)
    answer = await ctx.wait_for(approved)
    await ctx.step("last").run(note, answer)
    return answer


@workflow
async def going_on(ctx: Context, left: int) -> int:
    await ctx.step("note").run(note, f"{left}")
    if left:
        ctx.continue_as_new(left - 1)
    return left


async def listen(run: Run[Any], after: int = 0) -> AsyncGenerator[Event]:
    async with asyncio.timeout(WAIT_S):
        async for event in run.events(after=after):
            yield event


def steps(events: list[Event]) -> list[tuple[str, str]]:
    return [(event["kind"], event["step"]) for event in events if "step" in event]


def whole_story(rounds: int) -> list[tuple[str, str]]:
    names = ["note", *(f"note#{n}" for n in range(2, rounds + 1))]
    story = [(kind, name) for name in names for kind in ("step_started", "step_completed")]
    story += [("sleep_started", "nap"), ("sleep_completed", "nap")]
    story += [("signal_awaited", "approved"), ("signal_received", "approved")]
    return [*story, ("step_started", "last"), ("step_completed", "last")]


def check_numbers(events: list[Event]) -> None:
    seqs = [event["seq"] for event in events if event["kind"] != "run_status"]
    assert seqs == sorted(set(seqs)), f"reported twice, or out of order: {seqs}"


async def test_everything_is_reported_as_it_happens(server: Server) -> None:
    async with Worker(server.grpc_address, workflows=[watched]), Kagzi.connect(server.grpc_address) as client:
        run = await client.start(watched, 2)
        events: list[Event] = []
        async for event in listen(run):
            events.append(event)
            if event["kind"] == "signal_awaited":
                await run.signal(approved, "yes")
        assert events[0]["kind"] == "run_started"
        assert steps(events) == whole_story(2)
        assert (events[-1]["kind"], events[-1]["output"]) == ("run_completed", "yes")
        check_numbers(events)
        statuses = [event for event in events if event["kind"] == "run_status"]
        assert any(each.get("status_text") == "waiting" and each.get("progress") == 0.5 for each in statuses)
        # afterwards, and from the middle, the same
        again = [event async for event in listen(run)]
        assert [event for event in again if event["kind"] != "run_status"] == [
            event for event in events if event["kind"] != "run_status"
        ]
        middle = next(event for event in events if event["kind"] == "sleep_completed")
        rest = [event async for event in listen(run, middle["seq"])]
        assert steps(rest) == whole_story(2)[6:]
        assert [event async for event in listen(run, events[-1]["seq"])] == []


async def test_failed_attempts_and_outcomes_are_reported(server: Server) -> None:
    calls = 0

    async def shaky() -> None:
        nonlocal calls
        calls += 1
        raise OSError(f"try {calls}")

    @workflow
    async def failing(ctx: Context) -> None:
        await ctx.step("shaky", retry=Retry.fixed(2, "10ms")).run(shaky)

    async with Worker(server.grpc_address, workflows=[failing]), Kagzi.connect(server.grpc_address) as client:
        run = await client.start(failing)
        events = [event async for event in listen(run)]
        with pytest.raises(RunError):
            await run.result()
    assert steps(events) == [
        ("step_started", "shaky"),
        ("step_retrying", "shaky"),
        ("step_started", "shaky"),
        ("step_failed", "shaky"),
    ]
    by_kind = {event["kind"]: event for event in events}
    assert (by_kind["step_retrying"]["attempt"], by_kind["step_retrying"]["error"]["message"]) == (1, "try 1")
    assert by_kind["step_retrying"]["until"] >= by_kind["step_retrying"]["at"]
    assert events[-1]["kind"] == "run_failed"
    assert "try 2" in events[-1]["error"]["text"]


async def test_pause_resume_and_cancel_are_reported(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        run = await client.start("nobody-serves-this", None)
        events: list[Event] = []
        async for event in listen(run):
            events.append(event)
            if event.get("status") == "pending" and "pause_reason" not in str(events):
                await run.pause("have a look")
            elif event.get("status") == "paused":
                assert event["pause_reason"] == "have a look"
                await run.resume()
            elif event.get("status") == "pending":
                await run.cancel("enough")
        reported = [event.get("status") or event["kind"] for event in events]
        assert reported[:2] == ["run_started", "pending"]
        assert reported[2:] == ["run_paused", "paused", "run_resumed", "pending", "run_cancelled"]
        assert (events[-1]["kind"], events[-1]["error"]["message"]) == ("run_cancelled", "enough")


async def test_a_run_that_goes_on_as_another_says_as_which(server: Server) -> None:
    async with Worker(server.grpc_address, workflows=[going_on]), Kagzi.connect(server.grpc_address) as client:
        run: Run[Any] = await client.start(going_on, 2)
        kinds: list[str] = []
        while True:
            events = [event async for event in listen(run)]
            assert steps(events) == [("step_started", "note"), ("step_completed", "note")]
            kinds.append(events[-1]["kind"])
            if "continued_as" not in events[-1]:
                break
            run = client.get(events[-1]["continued_as"])
        assert kinds == ["run_continued", "run_continued", "run_completed"]


async def test_on_another_server_the_same(start_server: StartServer, postgres_url: str) -> None:
    one, other = await start_server(postgres_url), await start_server(postgres_url)
    async with Worker(one.grpc_address, workflows=[watched]), Kagzi.connect(other.grpc_address) as client:
        run = await client.start(watched, 3)
        events: list[Event] = []
        async for event in listen(run):
            events.append(event)
            if event["kind"] == "signal_awaited":
                await run.signal(approved, "yes")
        assert steps(events) == whole_story(3)
        check_numbers(events)


async def test_a_server_that_goes_away_costs_no_event_and_repeats_none(
    start_server: StartServer, postgres_url: str
) -> None:
    one, other = await start_server(postgres_url), await start_server(postgres_url)
    both = f"{one.grpc_address},{other.grpc_address}"
    async with Worker(other.grpc_address, workflows=[watched]), Kagzi.connect(both) as client:
        run = await client.start(watched, 30)
        events: list[Event] = []
        stopping: asyncio.Task[None] | None = None
        async for event in listen(run):
            events.append(event)
            if event.get("step") == "note#5" and stopping is None:
                stopping = asyncio.create_task(one.stop(0))
            if event["kind"] == "signal_awaited":
                await run.signal(approved, "yes")
        assert stopping is not None
        await stopping
        assert [event["kind"] for event in events].count("run_started") == 1
        assert steps(events) == whole_story(30)
        check_numbers(events)


# --- by message -------------------------------------------------------------------------------------------------------


async def responses(stubs: Stubs, **fields: Any) -> AsyncGenerator[pb.WatchResponse]:
    call = stubs.workflows.Watch(pb.WatchRequest(**fields), timeout=WAIT_S)
    try:
        async for response in call:
            yield response
    finally:
        call.cancel()


async def test_messages_carry_the_state_of_the_run(stubs: Stubs) -> None:
    task = await stubs.claim()
    async with aclosing(responses(stubs, run_id=task.run_id)) as stream:
        first = await anext(stream)
        assert [event.kind for event in first.events] == ["run_started"]
        assert first.status == pb.WORKFLOW_STATUS_RUNNING
        begin = worker_pb2.BeginStepRequest(**leased(task), step_name="a", kind=worker_pb2.STEP_KIND_FUNCTION)
        await stubs.workers.BeginStep(begin, timeout=TIMEOUT_S)
        begun = await anext(stream)
        assert [(event.kind, event.step_id, event.attempt) for event in begun.events] == [("step_started", "a", 1)]
        done = worker_pb2.CompleteStepRequest(**leased(task), step_id="a", output=json_payload("7"))
        await stubs.workers.CompleteStep(done, timeout=TIMEOUT_S)
        completed = await anext(stream)
        assert [(event.kind, event.data.data) for event in completed.events] == [("step_completed", b"7")]
        end = worker_pb2.CompleteWorkflowRequest(**leased(task), output=json_payload("8"))
        await stubs.workers.CompleteWorkflow(end, timeout=TIMEOUT_S)
        last = await anext(stream)
        assert [(event.kind, event.data.data) for event in last.events] == [("run_completed", b"8")]
        assert last.status == pb.WORKFLOW_STATUS_COMPLETED
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_what_is_not_there_or_not_right_is_refused(stubs: Stubs) -> None:
    started = await stubs.start()
    for fields, code in (
        ({"run_id": "no-such-run"}, grpc.StatusCode.NOT_FOUND),
        ({"run_id": started.run_id, "namespace_id": "foreign"}, grpc.StatusCode.NOT_FOUND),
        ({"run_id": started.run_id, "after_seq": -1}, grpc.StatusCode.INVALID_ARGUMENT),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            _ = [response async for response in responses(stubs, **fields)]
        assert refusal.value.code() == code


async def test_watchers_that_leave_are_forgotten(server: Server, stubs: Stubs) -> None:
    started = await stubs.start()
    async with aclosing(responses(stubs, run_id=started.run_id)) as stream:
        await anext(stream)
    async with asyncio.timeout(WAIT_S), Kagzi.connect(server.grpc_address) as client:
        with pytest.raises(NotFound):
            _ = [event async for event in client.get("nothing").events()]
        async with aclosing(client.get(started.run_id).events()) as events:
            assert (await anext(events))["kind"] == "run_started"

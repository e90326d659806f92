"""Starts: what is sent, how starts travel together, and the builder's equal spelling."""

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from kagzi.core.errors import InvalidArgument, NotFound, PermissionDenied, ResourceExhausted, Unavailable
from kagzi.core.states import RunStatus
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.client.unserved import UNSERVED
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.workflow import Workflow
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_server import GONE, WAIT_S, FakeServer


async def _greet(ctx: Any, name: str) -> str:
    return name


async def _tick(ctx: Any) -> None: ...


greet: Workflow[str, str] = Workflow(_greet, name="greet")
tick: Workflow[None, None] = Workflow(_tick, name="tick")


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Kagzi]:
    async with Kagzi.connect(server.address, namespace="shop") as connected:
        yield connected


def batches(server: FakeServer) -> list[wf.StartBatchRequest]:
    return server.requests("StartBatch")


async def test_everything_that_can_be_said_is_sent(server: FakeServer, client: Kagzi) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    run = await client.start(
        greet,
        "ada",
        id="order-1",
        start_at=at,
        deadline=at + timedelta(days=1),
        labels={"team": "a"},
        priority=7,
        version=2,
        retry=Retry.attempts(4),
        on_conflict="fail",
    )
    (batch,) = batches(server)
    (start,) = batch.starts
    assert batch.namespace_id == "shop"
    assert (start.workflow_type, start.workflow_id, start.input.data) == ("greet", "order-1", b'"ada"')
    assert start.start_at.ToDatetime(UTC) == at
    assert start.deadline_at.ToDatetime(UTC) == at + timedelta(days=1)
    assert (dict(start.labels), start.priority, start.version) == ({"team": "a"}, 7, "2")
    assert (start.retry_policy.maximum_attempts, start.on_conflict) == (4, wf.ON_CONFLICT_FAIL)
    assert start.request_id
    assert (run.id, run.workflow_id, run.created) == ("run-of-order-1", "order-1", True)
    assert (run.url, run.last_status) == ("http://x/runs/run-of-order-1", RunStatus.PENDING)


@dataclass
class Order:
    user: str
    total: int


async def _buy(ctx: Any, order: Order) -> None: ...


buy: Workflow[Any, None] = Workflow(_buy, name="buy")


@pytest.mark.parametrize(
    ("value", "field", "text"),
    [
        (Order("ada", cast("Any", "9")), "$.total", "Expected int, got str (at $.total)"),
        ({"user": "ada"}, "$", "Object missing required field total"),
        ("ada", "$", "Expected object, got str"),
        (None, "$", "Expected object, got null"),
    ],
)
async def test_an_input_that_does_not_fit_is_refused_before_anything_is_sent(
    server: FakeServer, client: Kagzi, value: Any, field: str, text: str
) -> None:
    for call in (client.start(buy, value), client.run(buy, value)):
        with pytest.raises(
            InvalidArgument, match="input of workflow 'buy' does not fit its declared type Order"
        ) as caught:
            await call
        assert text in str(caught.value)
        assert caught.value.field == field
    assert batches(server) == []
    await client.start(buy, {"user": "ada", "total": 9})  # what is read as an Order is one
    assert len(batches(server)) == 1


async def test_what_the_server_says_of_a_name_is_logged_once(
    server: FakeServer, client: Kagzi, caplog: pytest.LogCaptureFixture
) -> None:
    server.warning = "No worker serves 'typo-flow'. The run waits until one does."
    for _ in range(3):
        await client.start("typo_flow", 1)
    assert [record.getMessage() for record in caplog.records if record.name == "kagzi.client"] == [server.warning]
    assert {start.workflow_type for batch in batches(server) for start in batch.starts} == {"typo-flow"}
    UNSERVED.served(["late"])
    await client.start("late", 1)  # a worker of this process is about to serve it
    UNSERVED.served_no_longer(["late"])
    assert len(caplog.records) == 1


async def test_the_builder_says_the_same(server: FakeServer, client: Kagzi) -> None:
    start = client.start(greet).namespace("other").id("o").label("a", "1").labels({"b": "2"}).delay("5m")
    await start.priority(3).version("x").retry(Retry.none()).on_conflict("replace").input("ada")
    (batch,) = batches(server)
    (sent,) = batch.starts
    assert (batch.namespace_id, sent.workflow_id, dict(sent.labels)) == ("other", "o", {"a": "1", "b": "2"})
    assert (sent.delay.seconds, sent.priority, sent.version, sent.input.data) == (300, 3, "x", b'"ada"')
    assert (sent.retry_policy.maximum_attempts, sent.on_conflict) == (1, wf.ON_CONFLICT_REPLACE)


async def test_a_workflow_without_input_sends_none(server: FakeServer, client: Kagzi) -> None:
    await client.start(tick)
    assert not batches(server)[0].starts[0].HasField("input")


async def test_starts_of_one_pass_travel_together(server: FakeServer, client: Kagzi) -> None:
    runs = await asyncio.gather(*(client.start("greet", n, id=f"o{n}") for n in range(250)))
    assert [run.id for run in runs] == [f"run-of-o{n}" for n in range(250)]
    assert [len(batch.starts) for batch in batches(server)] == [100, 100, 50]


async def test_starts_made_while_batches_are_under_way_wait_for_company(server: FakeServer, client: Kagzi) -> None:
    latch = server.latches["StartBatch"] = asyncio.Event()
    starts: list[asyncio.Task[Any]] = []
    for n in range(30):
        starts.append(asyncio.create_task(client.start("greet", n, id=f"o{n}")))
        await asyncio.sleep(0)
    async with asyncio.timeout(WAIT_S):
        await server.until_called("StartBatch", 2)
        latch.set()
        await asyncio.gather(*starts)
    sizes = [len(batch.starts) for batch in batches(server)]
    assert sum(sizes) == 30
    assert len(sizes) == 3, sizes


@pytest.mark.parametrize(
    ("parts", "starts", "sizes"),
    [
        (2, 50, [25, 25]),
        (2, 39, [20, 19]),
        (2, 38, [38]),
        (2, 150, [75, 75]),
        (2, 230, [100, 100, 30]),
        (1, 50, [50]),
        (0, 50, [50]),  # a server that says nothing of it
    ],
)
async def test_many_starts_go_in_as_many_parts_as_the_server_wants(
    server: FakeServer, parts: int, starts: int, sizes: list[int]
) -> None:
    server.info.start_batches = parts
    async with Kagzi.connect(server.address) as client:
        await asyncio.gather(*(client.start(greet, "ada") for _ in range(starts)))
        assert [len(batch.starts) for batch in batches(server)] == sizes
        await asyncio.gather(*(client.start(greet, "ada") for _ in range(starts)))
        assert sorted(len(batch.starts) for batch in batches(server)) == sorted(2 * sizes), "nothing is left over"


async def test_a_lone_start_is_one_call(server: FakeServer, client: Kagzi) -> None:
    await client.start("greet", 1)
    await client.start("greet", 2)
    assert [len(batch.starts) for batch in batches(server)] == [1, 1]


async def test_big_inputs_are_cut_into_several_messages(server: FakeServer, client: Kagzi) -> None:
    await asyncio.gather(*(client.start("greet", "x" * 400_000) for _ in range(5)))
    assert [len(batch.starts) for batch in batches(server)] == [2, 2, 1]


async def test_one_refused_start_leaves_its_neighbours_alone(client: Kagzi) -> None:
    good, bad, other = await asyncio.gather(
        client.start("greet", 1, id="a"),
        client.start("refused", 1),
        client.start("greet", 1, id="b"),
        return_exceptions=True,
    )
    assert isinstance(bad, NotFound)
    assert not isinstance(good, BaseException)
    assert not isinstance(other, BaseException)


async def test_request_ids_of_starts_sort_by_time(server: FakeServer, client: Kagzi) -> None:
    """So that the stores' index of them grows at one end."""
    for _ in range(3):
        await client.start("greet", 1)
    drawn = [start.request_id for batch in batches(server) for start in batch.starts]
    assert [UUID(request_id).version for request_id in drawn] == [7, 7, 7]
    assert drawn == sorted(drawn)


async def test_a_repeated_call_carries_the_same_request_id(server: FakeServer, client: Kagzi) -> None:
    server.failures["StartBatch"] = [GONE, GONE]
    await client.start("greet", 1)
    first, second, third = batches(server)
    assert first == second == third
    assert first.starts[0].request_id


async def test_a_refusal_of_the_whole_call_is_not_repeated(server: FakeServer, client: Kagzi) -> None:
    server.failures["StartBatch"] = [PermissionDenied("no")]
    with pytest.raises(PermissionDenied):
        await client.start("greet", 1)
    assert len(batches(server)) == 1


async def test_patience_ends_with_an_error_that_names_the_address(server: FakeServer) -> None:
    async with Kagzi.connect(server.address, call_timeout="300ms") as client:
        await server.stop()
        with pytest.raises(Unavailable, match=server.address):
            await client.start("greet", 1)


async def test_a_server_that_comes_back_gets_the_start(server: FakeServer, client: Kagzi) -> None:
    await server.stop()
    start = asyncio.create_task(client.start("greet", 1, id="o"))
    await asyncio.sleep(0)
    await server.start()
    async with asyncio.timeout(WAIT_S):
        assert (await start).id == "run-of-o"


async def test_a_builder_never_awaited_warns(client: Kagzi) -> None:
    builder = client.start(greet)
    with pytest.warns(RuntimeWarning, match=r"client.start\('greet'\) was never awaited"):
        del builder


async def test_a_refined_builder_hands_the_warning_over(client: Kagzi, recwarn: pytest.WarningsRecorder) -> None:
    gc.collect()  # what tests before this one have left
    recwarn.clear()
    builder = client.start(greet)
    refined = builder.id("o").input("ada")
    del builder
    gc.collect()
    assert not recwarn.list
    await refined


async def test_awaiting_a_builder_again_asks_for_the_same_run(server: FakeServer, client: Kagzi) -> None:
    builder = client.start(greet).input("ada")
    assert (await builder).id == (await builder).id


async def test_a_coroutine_never_awaited_warns(client: Kagzi) -> None:
    with pytest.warns(RuntimeWarning, match=r"Kagzi.start' was never awaited"):
        client.start(greet, "ada")  # pyright: ignore[reportUnusedCoroutine]


async def test_the_timeout_of_a_workflow_is_sent_as_it_is_for_the_server_to_count(server: FakeServer) -> None:
    slow: Workflow[str, str] = Workflow(_greet, name="slow", timeout="1h")
    deadline = datetime(2040, 1, 1, tzinfo=UTC)
    async with Kagzi.connect(server.address) as client:
        await client.start(slow, "x")
        await client.start(slow, "x", deadline=deadline)
    first, second = (batch.starts[0] for batch in batches(server))
    assert (first.timeout.ToTimedelta(), first.HasField("deadline_at")) == (timedelta(hours=1), False)
    assert (second.timeout.ToTimedelta(), second.deadline_at.ToDatetime(UTC)) == (timedelta(hours=1), deadline)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delay": "5"}, "no unit"),
        ({"delay": "1s", "start_at": datetime(2030, 1, 1, tzinfo=UTC)}, "delay and start_at"),
        ({"start_at": datetime(2030, 1, 1)}, "no time zone"),
        ({"deadline": "1h"}, "is not a datetime"),
        ({"labels": {"a": 1}}, "must both be strings"),
        ({"priority": 101}, "-100..100"),
        ({"retry": 3}, "is not a Retry"),
        ({"on_conflict": "ignore"}, "must be one of"),
        ({"id": ""}, "1 to 256"),
    ],
)
async def test_bad_options_are_refused_before_anything_is_sent(
    server: FakeServer, client: Kagzi, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidArgument, match=says):
        await client.start(greet, "ada", **options)
    assert not batches(server)


async def test_an_input_over_the_servers_own_limit_is_not_sent(server: FakeServer) -> None:
    server.info.max_payload_bytes = 100
    async with Kagzi.connect(server.address) as client:
        with pytest.raises(ResourceExhausted, match="the limit of this server is 100"):
            await client.start("greet", "x" * 100)
    assert not batches(server)


async def test_inputs_must_fit_the_workflow(client: Kagzi) -> None:
    with pytest.raises(InvalidArgument, match=r"needs an input\. Pass it after the workflow"):
        await client.start(greet)
    with pytest.raises(InvalidArgument, match="takes no input"):
        await client.start(tick, 5)  # type: ignore[call-overload]
    with pytest.raises(InvalidArgument, match="neither a workflow"):
        await client.start(_greet, 5)  # type: ignore[call-overload]

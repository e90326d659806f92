"""What a client can do with runs, against a real server and worker."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kagzi import (
    Context,
    ErrorKind,
    InvalidArgument,
    Kagzi,
    NotFound,
    PreconditionFailed,
    Retry,
    RunError,
    RunStatus,
    Signal,
    Worker,
    workflow,
)
from tests.sdk.net.test_real_server import serving
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

WAIT_S = LOADED_MACHINE_S

proceed = Signal("go", int)
broken = True


@workflow
async def waits(ctx: Context, n: int) -> int:
    return n + await ctx.wait_for(proceed)


@workflow
async def adds_up(ctx: Context, n: int) -> int:
    total = 0
    for _ in range(n):
        total += await ctx.wait_for(proceed)
    return total


def fragile(price: int) -> int:
    if broken:
        raise ValueError("out of order")
    return price * 2


@workflow
async def buys(ctx: Context, n: int) -> int:
    price = await ctx.step("price").run(lambda: n)
    return await ctx.step("pay", retry=Retry.none()).run(fragile, price)


@workflow
async def counts_down(ctx: Context, n: int) -> str:
    await ctx.step("tick").run(lambda: n)
    if n:
        ctx.continue_as_new(n - 1)
    return "lift-off"


@workflow(timeout="200ms")
async def too_slow(ctx: Context) -> None:
    await ctx.sleep("for-ever", "1h")


class Latch:
    """A step that says that it runs, and runs until it is let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.proceed = asyncio.Event()
        self.cancelled = False

    async def body(self) -> None:
        self.entered.set()
        try:
            await self.proceed.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


latches: dict[str, Latch] = {}


@workflow
async def gated(ctx: Context, name: str) -> str:
    await ctx.step("gate").run(latches[name].body)
    return await ctx.step("after").run(lambda: "through")


@workflow
async def goes_on(ctx: Context, left: int) -> int:
    value = await ctx.wait_for(proceed)
    if left:
        ctx.continue_as_new(left - 1)
    return value


@workflow
async def pays_with_help(ctx: Context, n: int) -> int:
    helper = await ctx.start_child(waits, n, id="helper")
    price = await ctx.step("price").run(lambda: n)
    paid = await ctx.step("pay", retry=Retry.none()).run(fragile, price)
    return paid + await helper.result()


@workflow
async def pays_beside_help(ctx: Context, n: int) -> list[list[str]]:
    """Notes in which order its tasks go on: what is recorded of the first time, and what is seen each time."""
    order: list[str] = []

    async def helps() -> int:
        helper = await ctx.start_child(waits, n, id="helper")
        order.append("helper")
        order.append(await ctx.step("c").run(lambda: "c"))
        return await helper.result()

    async def works() -> None:
        order.append(await ctx.step("a").run(lambda: "a"))
        order.append(await ctx.step("b").run(lambda: "b"))

    helping = asyncio.ensure_future(helps())
    await works()
    await ctx.step("meanwhile").run(lambda: None)
    seen = list(order)
    recorded = await ctx.step("order").run(lambda: seen)
    await ctx.step("pay", retry=Retry.none()).run(fragile, n)
    await helping
    return [recorded, seen]


ALL = [waits, adds_up, buys, counts_down, too_slow, gated, goes_on, pays_with_help, pays_beside_help]


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with serving(":memory:") as where:
        yield where


@pytest.fixture
async def client(address: str) -> AsyncIterator[Kagzi]:
    async with Worker(address, workflows=ALL), Kagzi.connect(address) as connected:
        yield connected


async def until_waiting(client: Kagzi, id: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while await client.get(id).status() is not RunStatus.SLEEPING:
            pass  # each look is a round trip


async def test_signals_in_order_early_and_late(client: Kagzi) -> None:
    run = await client.start(adds_up, 3, id="sum")
    await client.signal("sum", proceed, 1)
    await until_waiting(client, "sum")
    await run.signal("go", 2)
    await client.signal(run.id, proceed, 3)
    assert await run.result(timeout=LOADED_MACHINE) == 6
    with pytest.raises(PreconditionFailed):
        await run.signal(proceed, 4)
    with pytest.raises(NotFound):
        await client.signal("nobody", proceed, 1)


async def test_signal_with_start_starts_once(client: Kagzi) -> None:
    first = await client.signal_with_start(adds_up, 2, proceed, 20, id="box")
    second = await client.signal_with_start(adds_up, 2, proceed, 22, id="box")
    assert (first.created, second.created, second.id) == (True, False, first.id)
    assert await first.result(timeout=LOADED_MACHINE) == 42


async def test_a_paused_run_keeps_its_signals_until_it_is_resumed(client: Kagzi) -> None:
    run = await client.start(waits, 1, id="paused")
    await until_waiting(client, "paused")
    await run.pause("lunch")
    assert await run.status() is RunStatus.PAUSED
    await run.signal(proceed, 41)
    assert await run.status() is RunStatus.PAUSED
    assert "paused" in str(await run.explain())
    await run.resume()
    assert await run.result(timeout=LOADED_MACHINE) == 42


async def test_a_pause_lets_a_running_step_finish_and_no_other_begin(client: Kagzi) -> None:
    latch = latches["pause"] = Latch()
    run = await client.start(gated, "pause")
    async with asyncio.timeout(WAIT_S):
        await latch.entered.wait()
        await run.pause()
        assert (await run.info()).pause_requested
        latch.proceed.set()
        while await run.status() is not RunStatus.PAUSED:
            pass  # each look is a round trip
    assert [(step.id, step.output) for step in await run.steps()] == [("gate", b"null")]
    await run.resume()
    assert await run.result(timeout=LOADED_MACHINE) == "through"


async def test_a_cancellation_reaches_a_running_step_at_once(client: Kagzi) -> None:
    latch = latches["cancel"] = Latch()
    run = await client.start(gated, "cancel")
    async with asyncio.timeout(WAIT_S):
        await latch.entered.wait()
    await run.cancel("enough")
    with pytest.raises(RunError, match="cancelled"):
        await run.result(timeout=LOADED_MACHINE)
    assert latch.cancelled
    # Its beginning is announced without waiting: a cancellation may be recorded before it.
    assert [step.id for step in await run.steps()] in ([], ["gate"])


async def test_cancelled_and_terminated_runs(client: Kagzi) -> None:
    first, second = await client.start_many(client.start(waits, 1, id=each) for each in ("c", "t"))
    await until_waiting(client, "c")
    await until_waiting(client, "t")
    await client.cancel("c", "enough")
    await client.terminate("t", "now")
    with pytest.raises(RunError, match="cancelled") as cancelled:
        await first.result(timeout=LOADED_MACHINE)
    with pytest.raises(RunError) as terminated:
        await second.result(timeout=LOADED_MACHINE)
    assert (cancelled.value.kind, terminated.value.kind) == (ErrorKind.CANCELLED, ErrorKind.TERMINATED)


async def test_retry_and_fork(client: Kagzi, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await client.start(buys, 3, id="purchase")
    with pytest.raises(RunError, match="out of order"):
        await run.result(timeout=LOADED_MACHINE)
    monkeypatch.setitem(globals(), "broken", False)
    await client.retry("purchase")
    assert await run.result(timeout=LOADED_MACHINE) == 6
    with pytest.raises(PreconditionFailed):
        await run.retry()
    forked = await run.fork(from_step="pay", outputs={"price": 50}, id="what-if")
    assert await forked.result(timeout=LOADED_MACHINE) == 100
    assert (await forked.info()).forked_from == run.id
    assert [step.id for step in await forked.steps()] == ["price", "pay"]
    with pytest.raises((PreconditionFailed, InvalidArgument, NotFound)):
        await run.fork(from_step="no-such-step")


@pytest.mark.parametrize("parent", [pays_with_help, pays_beside_help], ids=lambda parent: parent.name)
async def test_a_retry_starts_the_child_again_that_was_cancelled_with_its_parent(
    client: Kagzi, monkeypatch: pytest.MonkeyPatch, parent: Any
) -> None:
    """The child was begun before what is kept: the code meets it there, and does not diverge."""
    run = await client.start(parent, 3)
    with pytest.raises(RunError, match="out of order"):
        await run.result(timeout=LOADED_MACHINE)
    helper = client.get("helper", waits)
    with pytest.raises(RunError) as cancelled:
        await helper.result(timeout=LOADED_MACHINE)
    assert cancelled.value.kind is ErrorKind.CANCELLED
    monkeypatch.setitem(globals(), "broken", False)
    await run.retry()
    async with asyncio.timeout(WAIT_S):
        while (info := await run.info()).status is not RunStatus.SLEEPING:
            assert info.status is not RunStatus.PAUSED, info.problem
            await asyncio.sleep(0.01)
    await client.signal("helper", proceed, 4)
    result = await run.result(timeout=LOADED_MACHINE)
    if parent is pays_with_help:
        assert result == 6 + 7
    else:
        recorded, seen = result
        assert recorded == seen
    assert len([step for step in await run.steps() if step.kind == "child"]) == 1
    discarded = {step.id: step for step in await run.steps(forgotten=True)}
    assert discarded["pay"].error is not None
    [child] = [step for step in discarded.values() if step.kind == "child"]
    assert (child.status, child.child) == ("abandoned", cancelled.value.run_id)
    assert all(step.retried_at is not None for step in discarded.values())


async def test_a_result_follows_a_run_that_was_continued(client: Kagzi) -> None:
    run = await client.start(counts_down, 3, id="rocket")
    assert await run.result(timeout=LOADED_MACHINE) == "lift-off"
    assert (await run.info()).continued_as is not None
    assert await client.get("rocket", counts_down).result(timeout=LOADED_MACHINE) == "lift-off"


async def test_signals_reach_what_a_run_was_continued_as(client: Kagzi) -> None:
    run = await client.start(goes_on, 2, id="chain")
    for number in (1, 2, 3):  # by the handle of the first, however far the chain is
        await run.signal(proceed, number)
    assert await run.result(timeout=LOADED_MACHINE) == 3
    with pytest.raises(PreconditionFailed):
        await run.signal(proceed, 4)


async def test_the_timeout_of_a_workflow_ends_it(client: Kagzi) -> None:
    with pytest.raises(RunError) as caught:
        await client.run(too_slow, timeout=LOADED_MACHINE)
    assert caught.value.kind is ErrorKind.TIMEOUT


async def test_count_and_explain(client: Kagzi) -> None:
    await client.start_many(client.start("unheard-of", n, labels={"batch": "a"}) for n in range(5))
    assert await client.count(labels={"batch": "a"}) == 5
    assert await client.count(labels={"batch": "a"}, status="completed") == 0
    lonely = await client.start("unheard-of", 1, id="lonely")
    reported = await client.explain("lonely")
    assert "unheard-of" in str(reported)
    assert reported.reason
    assert reported.remedy
    await client.start(waits, 1, id="waiting")
    await until_waiting(client, "waiting")
    assert "go" in str(await client.explain("waiting"))
    await lonely.terminate()
    assert "terminated" in str(await lonely.explain()) or "cancelled" in str(await lonely.explain())

"""What people see of steps: arguments of failed attempts, log lines, the schema of a signal; with a real server."""

import asyncio
import json
import logging
from typing import Any

import pytest

from kagzi import Context, InvalidArgument, Kagzi, LogLine, Retry, RunError, Signal, StepRecord, Worker, workflow
from kagzi.sdk.client.run import Run
from tests.engine.fakes import until
from tests.support.timeouts import LOADED_MACHINE_S

logger = logging.getLogger("tests.seen_steps")
approved_by = Signal("go", int)


async def pay(amount: int, card: str) -> int:
    logger.warning("paying %d", amount)
    if amount > 5:
        raise ValueError("too much")
    return amount


@workflow
async def order(ctx: Context, amount: int) -> int:
    """Pays, and waits."""
    paid = await ctx.step("pay").run(pay, amount, card="4711")
    return paid + await ctx.wait_for(approved_by)


async def pack(basket: list[str]) -> int:
    """Changes what it was called with."""
    basket.append("note")
    if len(basket) < 4:
        raise OSError("no room")
    return len(basket)


@workflow
async def packing(ctx: Context) -> int:
    return await ctx.step("pack").retry(Retry.fixed(3, "1ms")).run(pack, ["book"])


async def steps_of(run: "Run[int]") -> dict[str, StepRecord]:
    return {step.name: step for step in await run.steps()}


async def lines_of(run: "Run[int]") -> list[LogLine]:
    async def written() -> bool:
        return bool((await run.logs()).lines)

    await until(written)
    return list((await run.logs("pay")).lines)


async def test_a_failed_step_shows_its_arguments_and_its_log() -> None:
    async with (
        asyncio.timeout(LOADED_MACHINE_S),
        Worker(":memory:", workflows=[order]),
        Kagzi.connect(":memory:") as client,
    ):
        failed = await client.start(order, 7)
        with pytest.raises(RunError):
            await failed.result()
        assert json.loads((await steps_of(failed))["pay"].input) == {"amount": 7, "card": "4711"}
        (line,) = await lines_of(failed)
        assert (line.step, line.attempt, line.level, line.text) == ("pay", 1, "WARNING", "paying 7")

        run = await client.start(order, 1)

        async def waits() -> bool:
            return "go" in await steps_of(run)

        await until(waits)
        steps = await steps_of(run)
        assert (steps["pay"].input, steps["go"].input) == (b"", b'{"type":"integer"}')
        with pytest.raises(InvalidArgument, match="signal: expected a whole number, got null"):
            await run.signal("go")
        with pytest.raises(InvalidArgument, match="input: expected a whole number, got string"):
            await client.start("order", "x")
        await run.signal("go", 2)
        assert await run.result() == 3
        schema = await client.workflow_types.schema(order)
        assert (schema.version, schema.description) == ("1", "Pays, and waits.")
        assert schema.input_schema == schema.output_schema == {"type": "integer"}
        assert schema.signal_schemas == {"go": {"type": "integer"}}


async def test_arguments_are_recorded_always_or_never() -> None:
    async with asyncio.timeout(LOADED_MACHINE_S), Kagzi.connect(":memory:") as client:
        async with Worker(":memory:", workflows=[order], record_inputs="always"):
            run = await client.start(order, 1)
            await run.signal(approved_by, 2)
            assert await run.result() == 3
        assert json.loads((await steps_of(run))["pay"].input) == {"amount": 1, "card": "4711"}
        async with Worker(":memory:", workflows=[order], record_inputs="never"):
            failed = await client.start(order, 7)
            with pytest.raises(RunError):
                await failed.result()
        assert (await steps_of(failed))["pay"].input == b""


@pytest.mark.parametrize(
    ("mode", "earlier", "last"),
    [
        ("failed", [2, 3], 3),  # they are written when an attempt has failed
        ("always", [1, 2], 3),  # or before each attempt begins
        ("never", [0, 0], 0),
    ],
)
async def test_each_attempt_shows_its_own_arguments(mode: Any, earlier: list[int], last: int) -> None:
    async with (
        asyncio.timeout(LOADED_MACHINE_S),
        Worker(":memory:", workflows=[packing], record_inputs=mode),
        Kagzi.connect(":memory:") as client,
    ):
        run = await client.start(packing)
        assert await run.result() == 4
        step = (await steps_of(run))["pack"]
        assert [len(json.loads(each.input)["basket"]) if each.input else 0 for each in step.earlier] == earlier
        assert (len(json.loads(step.input)["basket"]) if step.input else 0) == last

"""The context of a run: given with the start, read in the workflow, inherited by all that come from it."""

from typing import Any

import msgspec
import pytest

from kagzi import Context, InvalidArgument, Kagzi, Worker, schedule, workflow
from tests.support.timeouts import LOADED_MACHINE

FAMILY = {"tenant": "acme", "depth": {"levels": [1, 2]}}


@workflow
async def grandchild(ctx: Context) -> dict[str, Any]:
    return dict(ctx.context)


@workflow
async def child(ctx: Context) -> dict[str, Any]:
    return await ctx.child(grandchild)


@workflow
async def family(ctx: Context, more: int) -> list[dict[str, Any]]:
    inherited = await ctx.child(child)
    if more:
        await ctx.continue_as_new(more - 1)
    return [dict(ctx.context), inherited]


async def test_it_is_inherited_by_children_and_successors(tmp_path: Any) -> None:
    address = f"sqlite:///{tmp_path / 'context.db'}"
    async with Worker(address, workflows=[family, child, grandchild]), Kagzi.connect(address) as client:
        run = await client.start(family, 1, context=FAMILY)
        assert await run.result(timeout=LOADED_MACHINE) == [FAMILY, FAMILY]
        assert msgspec.json.decode((await run.info()).context) == FAMILY
        forked = await run.fork()
        assert await forked.result(timeout=LOADED_MACHINE) == [FAMILY, FAMILY]
        built = await client.start(family).input(0).context({"a": 1})
        assert await built.result(timeout=LOADED_MACHINE) == [{"a": 1}, {"a": 1}]
        without = await client.start(family, 0)
        assert await without.result(timeout=LOADED_MACHINE) == [{}, {}]
        assert (await without.info()).context == b""


async def test_each_run_of_a_schedule_has_it() -> None:
    async with Worker(":memory:", workflows=[grandchild]), Kagzi.connect(":memory:") as client:
        await client.schedules.apply(schedule("often", workflow=grandchild, every="1h", context=FAMILY))
        run = await client.schedules.trigger("often")
        assert await run.result(timeout=LOADED_MACHINE) == FAMILY
        await client.schedules.update("often", context={"b": 2})
        run = await client.schedules.trigger("often")
        assert await run.result(timeout=LOADED_MACHINE) == {"b": 2}


@pytest.mark.parametrize("wrong", [[1], "text", {1: "a"}, {"a": object()}])
async def test_what_is_no_json_object_is_refused_by_name(wrong: Any) -> None:
    async with Kagzi.connect(":memory:") as client:
        with pytest.raises(InvalidArgument, match="context"):
            await client.start("anything", 1, context=wrong)

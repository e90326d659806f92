"""The state of a run, from `ctx.set_state` to those who ask: typed, live, and after the end."""

import asyncio
from dataclasses import dataclass, field

import pytest

from kagzi import Context, InvalidArgument, Kagzi, RunStatus, Signal, Worker, workflow
from kagzi.server.app import Server
from tests.support.timeouts import LOADED_MACHINE_S

step_on = Signal("step-on", str)


@dataclass
class Basket:
    items: list[str] = field(default_factory=list[str])
    closed: bool = False


@workflow
async def basket(ctx: Context) -> int:
    state = Basket()
    ctx.set_state(state)
    while len(state.items) < 3:
        state.items.append(await ctx.wait_for(step_on))
        ctx.set_state(state)
    state.closed = True
    ctx.set_state(state)
    return len(state.items)


@workflow
async def silent(ctx: Context) -> None: ...


async def test_a_state_is_typed_live_and_stays(server: Server) -> None:
    async with Worker(server.grpc_address, workflows=[basket, silent]), Kagzi.connect(server.grpc_address) as client:
        run = await client.start(basket)
        seen: list[Basket] = []
        async with asyncio.timeout(LOADED_MACHINE_S):
            async for state in run.states(Basket):
                seen.append(state)
                if len(state.items) < 3 and not state.closed:
                    await run.signal(step_on, "abc"[len(state.items)])
        assert seen[0] == Basket()
        assert seen[-1] == Basket(["a", "b", "c"], closed=True)
        assert seen == sorted(seen, key=lambda each: len(each.items))
        assert await run.result() == 3
        assert await run.state(Basket) == seen[-1]
        assert await run.state() == {"items": ["a", "b", "c"], "closed": True}
        info = await run.info()
        assert (info.status, info.state) == (RunStatus.COMPLETED, b'{"items":["a","b","c"],"closed":true}')
        assert info.state_at is not None
        assert [state async for state in run.states(Basket)] == [seen[-1]]
        with pytest.raises(InvalidArgument, match=r"state of run .* does not fit"):
            await run.state(int)

        none = await client.start(silent)
        await none.result()
        assert (await none.state(), [state async for state in none.states()]) == (None, [])

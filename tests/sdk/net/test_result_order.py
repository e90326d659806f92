"""A result that somebody else recorded for a run is delivered in its place among the run's own, on real servers."""

import asyncio

from kagzi import Context, Kagzi, Signal, Worker, current_step, workflow
from tests.support.postgres import Databases
from tests.support.timeouts import LOADED_MACHINE_S

from .test_real_server import serving

ROUNDS = 20
PROCEED = Signal("go", None)
clients: list[Kagzi] = []


async def signal_own_run() -> None:
    """The signal is recorded, and acknowledged to its sender, before the step is."""
    await clients[0].get(current_step().run_id).signal(PROCEED)


@workflow
async def observer(ctx: Context) -> list[str]:
    seen: list[str] = []

    async def signals() -> None:
        await ctx.wait_for(PROCEED)
        seen.append("signal")

    async def steps() -> None:
        await ctx.step("send").run(signal_own_run)
        seen.append("step")

    for _ in range(ROUNDS):
        await asyncio.gather(signals(), steps())
    return seen


async def test_a_signal_through_another_server_is_delivered_before_the_step_that_was_recorded_after_it(
    postgres: Databases,
) -> None:
    """The notice comes over the bus, later than the acknowledgement of the step."""
    with postgres.database() as url:
        async with (
            asyncio.timeout(LOADED_MACHINE_S),
            serving(url) as here,
            serving(url) as there,
            Kagzi.connect(there) as client,
            Worker(here, workflows=[observer]),
        ):
            clients[:] = [client]
            assert await client.run(observer) == ["signal", "step"] * ROUNDS

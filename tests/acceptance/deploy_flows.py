"""One workflow, at the version that the environment of the process names."""

import asyncio
import os

from kagzi import Context, Worker, current_step, workflow
from tests.support.ledger import Ledger

LEDGER = Ledger(os.environ.get("KAGZI_TEST_LEDGER", "ledger.jsonl"))
VERSION = os.environ.get("KAGZI_TEST_VERSION", "1")
STEPS = 5


async def work(number: int) -> int:
    step = current_step()
    LEDGER.write("begin", step.run_id, step.step_id, attempt=step.attempt, note=VERSION)
    await asyncio.sleep(0.1)
    return number


@workflow("order", version=VERSION)
async def order(ctx: Context) -> str:
    for number in range(STEPS):
        await ctx.step("work").run(work, number)
    await ctx.sleep("settle", "1.2s")  # parked: it must come back to a worker of its version
    await ctx.step("last").run(work, STEPS)
    return f"{ctx.version} by code of {VERSION}"


worker = Worker(workflows=[order], shutdown_grace="20s", build_id=f"build-{VERSION}")

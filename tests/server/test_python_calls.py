"""How many functions of ours a lone step, a lone run, and steps in company go through, in server, worker and client
together, and how many of contextlib's: a generator as a block costs four of them.

CPU time drifts with the machine; this does not, and it is what a lone step costs beside the disk and the network.
"""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType

import kagzi
from kagzi import Context, Kagzi, Worker, workflow
from kagzi.server.app import Server
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.connection.inline import InlineCalls
from tests.support.timeouts import LOADED_MACHINE

from .conftest import ANY_PORT, StartServer
from .test_message_counts import UNHURRIED

COUNTED = (str(Path(kagzi.__file__).parent), str(contextlib.__file__))
FEW, MANY = 10, 30
TRIES = 8
STEP_CALLS = 237
RUN_CALLS = 910
TOGETHER = 12  # runs of MANY steps each, so that a message and a batch have many
TOGETHER_CALLS = 80
AT_ONCE = 60  # steps of one run
AT_ONCE_CALLS = 86
FEW_TRIES = 2


async def body() -> int:
    return 1


@workflow
async def steps(ctx: Context, count: int) -> int:
    return sum([await ctx.step("one").run(body) for _ in range(count)])


@workflow
async def steps_at_once(ctx: Context, count: int) -> int:
    return sum(await asyncio.gather(*(ctx.step("one").run(body) for _ in range(count))))


def write_inline(server: Server) -> None:
    """As on a quick disk, whatever the machine does."""
    assert server._engine is not None
    store = server._engine._journal._store
    assert isinstance(store, SqliteStore)
    store._inline = InlineCalls(timer=lambda: 0.0)


async def run_together(client: Kagzi) -> None:
    await asyncio.gather(*(client.run(steps, MANY) for _ in range(TOGETHER)))


async def calls_of(act: Callable[[], Awaitable[object]]) -> int:
    count = 0

    def on_event(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(COUNTED)

    sys.setprofile(on_event)
    try:
        await act()
    finally:
        sys.setprofile(None)
    return count


async def test_steps_and_runs_take_few_calls(start_server: StartServer) -> None:
    """The least of some tries: a begin that is held for more than 5 ms leaves by itself, and a poll comes between."""
    server = await start_server("sqlite:///:memory:", settings=UNHURRIED, http=ANY_PORT)
    write_inline(server)
    async with (
        Kagzi.connect(server.grpc_address) as client,
        Worker(server.grpc_address, workflows=[steps, steps_at_once]),
    ):
        await client.run(steps, FEW, timeout=LOADED_MACHINE)
        used = {
            count: min([await calls_of(lambda: client.run(steps, count)) for _ in range(TRIES)])  # noqa: B023
            for count in (1, FEW, MANY)
        }
        together = min([await calls_of(lambda: run_together(client)) for _ in range(FEW_TRIES)])
        at_once = min([await calls_of(lambda: client.run(steps_at_once, AT_ONCE)) for _ in range(FEW_TRIES)])
    of_step = (used[MANY] - used[FEW]) / (MANY - FEW)
    assert of_step <= STEP_CALLS, used
    assert used[1] <= RUN_CALLS, used
    assert together / (TOGETHER * MANY) <= TOGETHER_CALLS, together
    assert (at_once - used[1]) / (AT_ONCE - 1) <= AT_ONCE_CALLS, at_once

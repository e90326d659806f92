"""A deploy gives waits under way another timeout, also to runs that nothing else would wake; through real servers, on
both stores, and embedded."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kagzi import Context, Kagzi, Run, RunStatus, Signal, Worker, Workflow
from kagzi.server.app import Server
from tests.acceptance.cluster import until_status
from tests.support.timeouts import LOADED_MACHINE

from .conftest import StartServer

PROCEED = Signal("go", str)
LATE = "nothing came"

Code = Callable[[Context], Awaitable[str]]


async def no_timeout(ctx: Context) -> str:
    return await ctx.wait_for(PROCEED)


async def timed_out(ctx: Context) -> str:
    return await ctx.wait_for(PROCEED, timeout="1us", default=LATE)


async def one_day(ctx: Context) -> str:
    return await ctx.wait_for(PROCEED, timeout="1 day", default=LATE)


async def raced(ctx: Context) -> str:
    return str((await ctx.race(go=no_timeout(ctx), nap=ctx.sleep("nap", "30 days"))).value)


async def raced_and_timed_out(ctx: Context) -> str:
    return str((await ctx.race(go=timed_out(ctx), nap=ctx.sleep("nap", "30 days"))).value)


def worker(address: str, code: Code, build_id: str) -> Worker:
    return Worker(address, workflows=[Workflow(code, name="waits")], build_id=build_id)


async def waiting(client: Kagzi, address: str, code: Code = no_timeout) -> Run[Any]:
    async with worker(address, code, "v1"):
        run = await client.start("waits")
        await until_status(run, RunStatus.SLEEPING)
    return run


@pytest.mark.parametrize(
    ("before", "after"), [(no_timeout, timed_out), (one_day, timed_out), (raced, raced_and_timed_out)]
)
async def test_a_new_timeout_that_is_over_ends_the_wait_of_a_sleeping_run(
    server: Server, before: Code, after: Code
) -> None:
    address = server.grpc_address
    async with Kagzi.connect(address) as client:
        run = await waiting(client, address, before)
        async with worker(address, after, "v2"):
            assert await run.result(timeout=LOADED_MACHINE) == LATE


async def test_embedded(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/kagzi.db"
    async with Kagzi.connect(address) as client:
        run = await waiting(client, address)
        async with worker(address, timed_out, "v2"):
            assert await run.result(timeout=LOADED_MACHINE) == LATE


async def test_a_timeout_that_was_removed_leaves_the_run_waiting(server: Server) -> None:
    address = server.grpc_address
    async with Kagzi.connect(address) as client:
        run = await waiting(client, address, one_day)
        assert "until" in str(await run.explain())
        async with worker(address, no_timeout, "v2"):
            explained = str(await run.explain())
            while "until" in explained:
                explained = str(await run.explain())
            await until_status(run, RunStatus.SLEEPING)
            await run.signal(PROCEED, "at last")
            assert await run.result(timeout=LOADED_MACHINE) == "at last"


async def test_a_worker_of_the_earlier_build_that_is_still_there_delays_it_until_it_leaves(
    server: Server,
) -> None:
    address = server.grpc_address
    async with Kagzi.connect(address) as client:
        old = worker(address, no_timeout, "v1")
        async with old:
            run = await client.start("waits")
            await until_status(run, RunStatus.SLEEPING)
            new = worker(address, timed_out, "v2")
            await new.__aenter__()
            assert await run.status() is RunStatus.SLEEPING
        try:
            assert await run.result(timeout=LOADED_MACHINE) == LATE
        finally:
            await new.__aexit__(None, None, None)


async def test_with_two_servers_the_one_that_the_old_worker_leaves_wakes_the_runs(
    start_server: StartServer, migrated_postgres_url: str
) -> None:
    one, two = await start_server(migrated_postgres_url), await start_server(migrated_postgres_url)
    async with Kagzi.connect(one.grpc_address) as client:
        async with worker(one.grpc_address, no_timeout, "v1"):
            run = await client.start("waits")
            await until_status(run, RunStatus.SLEEPING)
            new = worker(two.grpc_address, timed_out, "v2")
            await new.__aenter__()
        try:
            assert await run.result(timeout=LOADED_MACHINE) == LATE
        finally:
            await new.__aexit__(None, None, None)

"""Cancel, retry, resume, terminate and delete by filter, through a real server, with the SDK."""

import asyncio

import pytest

from kagzi import Context, InvalidArgument, Kagzi, NotFound, RunStatus, Worker, workflow
from kagzi.core.errors import NonRetryable
from kagzi.server.app import Server
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE

from .conftest import StartServer


class Failing:
    now = True


@workflow
async def shaky(ctx: Context, number: int) -> int:
    return await ctx.step("try").run(attempt, number)


async def attempt(number: int) -> int:
    if Failing.now:
        raise NonRetryable("not yet")
    return number


async def failed_runs(client: Kagzi, count: int) -> None:
    runs = await client.start_many(client.start(shaky, number, labels={"day": "one"}) for number in range(count))
    await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs), return_exceptions=True)
    assert await client.count(status="failed") == count


async def test_cancel_by_filter(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        await client.start_many(client.start("nobody-serves-this", n, labels={"team": "ab"[n % 2]}) for n in range(250))
        operation = await client.bulk.cancel(labels={"team": "a"}, reason="wrong team")
        progress = await operation.wait("20s")
        assert (progress.matched, progress.done, progress.failed, progress.stopped) == (125, 125, 0, False)
        assert progress.finished_at is not None
        assert await client.count(status="cancelled") == 125
        assert await client.count(status="pending", labels={"team": "b"}) == 125
        fetched = client.bulk.get(operation.id)
        assert await fetched.progress() == progress
        assert [one.id async for one in client.bulk.list()] == [operation.id]


async def test_runs_that_come_later_are_left_alone(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        await client.start_many(client.start("idle", n) for n in range(3))
        operation = await client.bulk.terminate(workflow="idle")
        later = await client.start("idle", 4)
        assert (await operation.wait("20s")).matched == 3
        assert await later.status() is RunStatus.PENDING


async def test_retry_by_filter(server: Server) -> None:
    Failing.now = True
    async with Kagzi.connect(server.grpc_address) as client, Worker(server.grpc_address, workflows=[shaky]):
        await failed_runs(client, 30)
        Failing.now = False
        operation = await client.bulk.retry(workflow=shaky)
        assert (await operation.wait("20s")).done == 30

        async def all_completed() -> bool:
            return await client.count(status="completed") == 30

        await until(all_completed)


async def test_resume_by_filter(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        paused = await client.start_many(client.start("idle", n, labels={"team": "ab"[n % 2]}) for n in range(6))
        for run in paused:
            await run.pause("a look at it")
        ended = await client.start("idle", 6, labels={"team": "a"})
        await ended.terminate()
        progress = await (await client.bulk.resume(labels={"team": "a"})).wait("20s")
        assert (progress.action, progress.matched, progress.done, progress.failed) == ("resume", 3, 3, 0)
        assert await client.count(status="pending", labels={"team": "a"}) == 3
        assert await client.count(status="paused") == 3
        assert (await (await client.bulk.resume(problem=True)).wait("20s")).matched == 0
        refused = await (await client.bulk.resume(status="cancelled")).wait("20s")
        assert (refused.done, refused.failed) == (0, 1)
        assert "only paused runs can be resumed" in refused.last_error


async def test_delete_takes_only_what_has_ended(server: Server) -> None:
    Failing.now = True
    async with Kagzi.connect(server.grpc_address) as client:
        async with Worker(server.grpc_address, workflows=[shaky]):
            await failed_runs(client, 5)
        open_run = await client.start("idle", 1, labels={"day": "one"})
        operation = await client.bulk.delete(labels={"day": "one"})
        progress = await operation.wait("20s")
        assert (progress.matched, progress.done, progress.failed) == (6, 5, 1)
        assert open_run.id in progress.last_error
        assert "only runs that have ended" in progress.last_error
        assert [run.id async for run in client.list()] == [open_run.id]


async def test_an_empty_filter_is_refused(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        with pytest.raises(InvalidArgument, match="Give at least one condition"):
            await client.bulk.cancel()
        assert [one async for one in client.bulk.list()] == []


async def test_namespaces_do_not_see_or_touch_each_other(server: Server) -> None:
    async with (
        Kagzi.connect(server.grpc_address, namespace="mine") as mine,
        Kagzi.connect(server.grpc_address, namespace="theirs") as theirs,
    ):
        run = await theirs.start("idle", 1)
        operation = await mine.bulk.cancel(status="pending")
        assert (await operation.wait("20s")).matched == 0
        assert await run.status() is RunStatus.PENDING
        for ask in (theirs.bulk.get(operation.id).progress, theirs.bulk.get(operation.id).stop):
            with pytest.raises(NotFound):
                await ask()
        with pytest.raises(NotFound):
            await mine.bulk.get("no-such-operation").progress()


async def test_stop(start_server: StartServer, database_url: str) -> None:
    server = await start_server(database_url)
    async with Kagzi.connect(server.grpc_address) as client:
        await client.start_many(client.start("idle", n) for n in range(1_000))
        operation = await client.bulk.cancel(workflow="idle")
        stopped = await operation.stop()
        assert (stopped.stopped, stopped.finished) == (True, True)
        assert await client.bulk.stop(operation.id) is not None

        # What was being done when it was stopped is finished and counted.
        async def counted() -> bool:
            return (await operation.progress()).done == await client.count(status="cancelled")

        await until(counted)
        assert await client.count(status="pending") > 0


async def test_ten_thousand_starts_in_one_call(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        runs = await client.start_many(client.start("idle", n) for n in range(10_000))
        assert len({run.id for run in runs}) == 10_000
        assert await client.count(workflow="idle") == 10_000

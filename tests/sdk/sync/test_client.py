"""The client without await against a real server and worker."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kagzi import Context, NotFound, PreconditionFailed, RunError, RunStatus, Signal, Worker, schedule, workflow
from kagzi.sync import Kagzi
from kagzi.sync.background import Background
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

approval = Signal("approval", str)


@workflow
async def greet(ctx: Context, name: str) -> str:
    return await ctx.step("greet").run(lambda: f"Hello, {name}!")


@workflow
async def patient(ctx: Context, name: str) -> str:
    return f"{name}: {await ctx.wait_for(approval)}"


@workflow
async def broken(ctx: Context, name: str) -> str:
    raise KeyError(name)


@workflow
async def nothing(ctx: Context) -> int:
    return 7


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """Of a server with a worker, in the loop of the test; the client is used in other threads."""
    address = f"sqlite:///{tmp_path / 'sync.db'}"
    async with Worker(address, workflows=[greet, patient, broken, nothing]):
        yield address


def use_everything(address: str) -> None:
    with Kagzi.connect(address) as client:
        assert client.run(greet, "Ada") == "Hello, Ada!"
        assert client.start(nothing).result() == 7
        run = client.start(patient, "Bo", id="bo", labels={"kind": "test"})
        assert run.created
        assert client.get("bo").status() in {RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SLEEPING}
        run.signal(approval, "went")
        assert run.result(timeout=LOADED_MACHINE) == "Bo: went"
        assert run.namespace == "default"
        assert [event["kind"] for event in run.events()][-1] == "run_completed"
        runs = client.start_many(greet, [f"n{number}" for number in range(20)], labels={"many": "yes"})
        assert [each.result() for each in runs] == [f"Hello, n{number}!" for number in range(20)]
        assert {each.id for each in client.list(labels={"many": "yes"})} == {each.id for each in runs}
        assert client.count(labels={"many": "yes"}) == 20
        with pytest.raises(RunError, match="KeyError"):
            client.run(broken, "x")
        with pytest.raises(NotFound):
            client.get("missing").info()
        client.schedules.apply(schedule("daily", workflow=greet, cron="0 6 * * *", input="Ada"))
        assert [each.id for each in client.schedules.list()] == ["daily"]
        progress = client.bulk.cancel(labels={"many": "yes"}).wait()
        assert progress.matched == progress.done
        lines = list(client.export(run.id))
        assert len(lines) > 2
        assert str(client.explain(run.id))


async def test_every_kind_of_call(address: str) -> None:
    await asyncio.wait_for(asyncio.to_thread(use_everything, address), LOADED_MACHINE_S)
    assert not [thread for thread in threading.enumerate() if thread.name == "kagzi-sync"]


async def test_threads_share_a_client(address: str) -> None:
    with await asyncio.to_thread(Kagzi.connect, address) as client:
        names = [f"n{number}" for number in range(8)]
        greetings = await asyncio.gather(*(asyncio.to_thread(client.run, greet, name) for name in names))
        assert greetings == [f"Hello, {name}!" for name in names]
        closing = asyncio.to_thread(client.close)
        await closing


async def test_it_is_refused_where_it_would_stop_a_loop(address: str) -> None:
    with pytest.raises(PreconditionFailed, match="would stop the event loop"):
        Kagzi.connect(address)


def test_a_client_is_not_used_after_a_fork() -> None:
    client = Kagzi.connect(":memory:")
    client._background._pid = os.getpid() + 1  # as if this were the child
    try:
        with pytest.raises(PreconditionFailed, match="Connect in the child"):
            client.count()
    finally:
        client._background._pid = os.getpid()
        client.close()


def test_an_iterator_that_is_left_closes_its_source() -> None:
    closed: list[bool] = []

    async def rows() -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield number
        finally:
            closed.append(True)

    background = Background.acquire()
    try:
        iterator = background.iterate(rows, str)
        assert next(iterator) == "0"
        iterator.close()
        assert closed == [True]
    finally:
        background.release()

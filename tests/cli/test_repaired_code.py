"""Code that does not fit pauses its runs; once it is repaired they continue by themselves, on both stores."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kagzi import Context, Kagzi, Run, RunStatus, Signal, Worker, workflow
from tests.support.kagzi_process import RunningCommand, running

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "off")
DEADLINE_S = 60.0

FLOWS = """
from kagzi import Context, Signal, Worker, schedule, workflow
from plan import before

proceed = Signal("go", str)

@workflow
async def order(ctx: Context) -> str:
    await before(ctx)
    await ctx.step("charge").run(lambda: "charged by new code")
    return await ctx.wait_for(proceed)

nightly = schedule("nightly", workflow=order, cron="0 3 1 1 *")
worker = Worker(workflows=[order], labels={"team": "a"}, schedules=[nightly])
"""
BROKEN = """
async def before(ctx):
    await ctx.step("check").run(lambda: None)
"""
REPAIRED = """
async def before(ctx):
    if ctx.changed("check"):
        await ctx.step("check").run(lambda: None)
"""

proceed = Signal("go", str)


@workflow("order")
async def as_it_was(ctx: Context) -> str:
    await ctx.step("charge").run(lambda: "charged")
    return await ctx.wait_for(proceed)


async def until(run: Run[str], status: RunStatus) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await run.status() is not status:  # noqa: ASYNC110  a pause has no signal for those who do not watch
            await asyncio.sleep(0.05)


async def begin(address: str) -> str:
    """A run that has charged with the code as it was, and waits."""
    async with Kagzi.connect(address) as client, Worker(address, workflows=[as_it_was]):
        run = await client.start(as_it_was)
        await until(run, RunStatus.SLEEPING)
        return run.id


class Place:
    """Where the code runs: `kagzi dev` on SQLite, or `kagzi worker --reload` with a server on PostgreSQL."""

    def __init__(self, kind: str, folder: Path, database: str, stack: ExitStack) -> None:
        self.kind = kind
        self.folder = folder
        self._stack = stack
        if kind == "dev-on-sqlite":
            (folder / ".kagzi").mkdir()
            self.address = f"sqlite:///{folder}/.kagzi/kagzi.db"
        else:
            server = stack.enter_context(running("server", "--db", database, *NO_PORTS))
            self.address = server.says(r"kagzi server ready .*?grpc=(\S+)", DEADLINE_S)[1]

    def serve(self) -> RunningCommand:
        if self.kind == "dev-on-sqlite":
            arguments = ("dev", "flows.py", *NO_PORTS)
        else:
            arguments = ("worker", "flows.py", "--reload", "--address", self.address)
        program = self._stack.enter_context(running(*arguments, cwd=self.folder))
        self.address = program.says(r"worker \S+ serves \S+ at (\S+)", DEADLINE_S)[1]
        return program


@pytest.fixture(params=["dev-on-sqlite", "worker-on-postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "code"
    folder.mkdir()
    database = request.getfixturevalue("postgres_url") if request.param == "worker-on-postgres" else ""
    with ExitStack() as stack:
        yield Place(request.param, folder, database, stack)


@pytest.mark.timeout(200)
def test_a_run_paused_by_divergence_completes_once_the_code_is_repaired(place: Place) -> None:
    run_id = asyncio.run(begin(place.address))
    (place.folder / "flows.py").write_text(FLOWS)
    (place.folder / "plan.py").write_text(BROKEN)
    program = place.serve()

    async def repair() -> None:
        async with Kagzi.connect(place.address) as client:
            run = client.get(run_id, workflow=as_it_was)
            await run.signal(proceed, "gone")
            await until(run, RunStatus.PAUSED)
            (place.folder / "plan.py").write_text(REPAIRED)  # not the file that is served: one that it imports
            assert await run.result(timeout=f"{DEADLINE_S}s") == "gone"
            charge = (await run.steps())[0]
            assert (charge.id, charge.output) == ("charge", b'"charged"')  # not again, by new code
            builds = {worker.build_id async for worker in client.workers.list() if worker.labels}
            assert len(builds) == 2  # what the Worker object says is there, too
            assert [each.id async for each in client.schedules.list()] == ["nightly"]

    asyncio.run(repair())
    assert program.interrupt() == 0

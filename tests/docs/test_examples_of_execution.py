"""e03 to e07 as they are, in one process on a file, on a SQLite server and on a PostgreSQL server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from examples import e03_parallel, e04_race, e05_approval, e06_child, e07_agent
from kagzi import Kagzi, Run, RunStatus, StepStatus, Worker
from tests.support.kagzi_process import running
from tests.support.postgres import Databases
from tests.support.timeouts import LOADED_MACHINE_S

PLACES = ("embedded", "sqlite", "postgres")
WAIT_S = LOADED_MACHINE_S
WORKFLOWS = [
    e03_parallel.build_profile,
    e04_race.best_quote,
    e04_race.who_won,
    e05_approval.approve_expense,
    e06_child.make_thumbnail,
    e06_child.publish_album,
    e07_agent.support_agent,
]

pytestmark = pytest.mark.xdist_group("examples-of-execution")  # they share the servers


@pytest.fixture(scope="module", params=PLACES)
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("examples")
    if request.param == "embedded":
        yield f"sqlite:///{directory / 'embedded.db'}"
        return
    with ExitStack() as stack:
        database = f"sqlite:///{directory / 'server.db'}"
        if request.param == "postgres":
            databases: Databases = request.getfixturevalue("postgres")
            database = stack.enter_context(databases.database())
        ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
        server = stack.enter_context(running("server", "--db", database, *ports, cwd=directory))
        yield server.says(r"grpc=(\S+)")[1]


@pytest.fixture
async def client(address: str) -> AsyncIterator[Kagzi]:
    async with Worker(address, workflows=WORKFLOWS), Kagzi.connect(address) as connected:
        yield connected


async def step_ids(run: Run[object]) -> list[str]:
    return [step.id for step in await run.steps()]


async def until_asleep(run: Run[object]) -> None:
    """There is no signal for it: a run that waits is seen to wait."""
    async with asyncio.timeout(WAIT_S):
        while await run.status() is not RunStatus.SLEEPING:
            pass  # each look is a round trip


async def test_parallel(client: Kagzi) -> None:
    run = await client.start(e03_parallel.build_profile, "u1")
    profile = await run.result()
    assert (profile.user, profile.orders) == ("user-u1", [1, 2, 3])
    assert profile.score == pytest.approx(0.9 * 3 + 6)
    steps = {step.id: step for step in await run.steps()}
    assert {"parallel[3]/open", "parallel[3]/close", "enrich[1]", "enrich[2]", "enrich[3]"} <= set(steps)
    assert steps["enrich[2]"].parallel_group == "enrich"
    assert all(step.status is StepStatus.COMPLETED for step in steps.values())


async def test_race(client: Kagzi) -> None:
    run = await client.start(e04_race.best_quote, "berlin")
    quote = await run.result()
    assert quote is not None
    assert quote.carrier == "ups"
    by_status = {step.name: step.status for step in await run.steps()}
    assert by_status["ask-ups"] is StepStatus.COMPLETED
    assert by_status["deadline"] is StepStatus.ABANDONED
    assert await client.run(e04_race.who_won, "berlin") == "dhl"


@pytest.mark.parametrize("when", ["before", "while"])
async def test_approval(client: Kagzi, when: str) -> None:
    run = await client.start(e05_approval.approve_expense, e05_approval.Expense(id=f"e-{when}", amount=5))
    if when == "while":
        await until_asleep(run)
        assert run.status_text == "waiting for a human: 5 EUR"
        assert (await run.info()).waits == ("decision",)
    await e05_approval.on_button_click(client, run.id, "ada")
    assert await run.result() == "paid"
    assert await step_ids(run) == ["ask", "decision", "pay"]


async def test_approval_refused_by_workflow_id(client: Kagzi) -> None:
    expense = e05_approval.Expense(id="e9", amount=5)
    run = await client.start(e05_approval.approve_expense, expense, id="expense-e9")
    answer = e05_approval.Decision(approved=False, by="bob")
    await client.signal("expense-e9", e05_approval.decision, answer)
    assert await run.result() == "rejected"


async def test_children(client: Kagzi) -> None:
    run = await client.start(e06_child.publish_album, ["a", "b", "c"], id="album")
    assert await run.result() == ["a?small", "b?small", "c?small"]
    children = [child async for child in client.list(parent=run)]
    assert len(children) == await client.count(parent=run) == 3
    assert {(await child.info()).parent for child in children} == {run.id}
    assert await client.get("album/cover", e06_child.make_thumbnail).result() == "a?small"
    assert {step.child for step in await run.steps() if step.child} == {child.id for child in children}


async def test_agent(client: Kagzi) -> None:
    run = await client.start(e07_agent.support_agent, e07_agent.Task(goal="refund me"))
    await run.signal(e07_agent.approved, True)
    assert await run.result() == "done, refunded"
    assert await step_ids(run) == ["llm", "use-tool", "llm#2", "approved", "use-tool#2", "llm#3"]
    info = await run.info()
    assert info.deadline_at is not None
    assert abs(info.deadline_at - info.created_at - timedelta(days=2)) < timedelta(seconds=10)

"""A recorded run as a test: it passes as it is, reads well, and fails when the workflow is changed."""

import asyncio
import inspect
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kagzi import InvalidArgument, Kagzi, Run, RunStatus, Worker
from kagzi.testing import History
from kagzi.testing.to_pytest.calls import replay_seeing
from kagzi.testing.to_pytest.homes import home_of
from kagzi.testing.to_pytest.writer import WrittenTest, write_test
from tests.support.polling import until
from tests.testing.to_pytest import programs
from tests.testing.to_pytest.models import Item, Order

NAMES = ("everything", "fails", "waits", "cancelled", "counts", "local", "fork")


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, History]:
    """What a real server has recorded of each program, by workflow id."""
    address = f"sqlite:///{tmp_path_factory.mktemp('recorded')}/kagzi.db"
    return asyncio.run(_record(address))


async def _record(address: str) -> dict[str, History]:
    async with Worker(address, workflows=programs.WORKFLOWS), Kagzi.connect(address) as client:
        order = Order(customer="ada", items=[Item("tin", 3), Item("cup", 1), Item("tea", 2)], total=9.5)
        whole = await client.start(
            programs.everything, order, id="everything", labels={"team": "a"}, context={"x": [1]}
        )
        await whole.signal(programs.sent, Item("kettle"))
        await client.start(programs.fails, "ada", id="fails")
        open_ = await client.start("waits", None, id="waits")
        stopped = await client.start("waits", None, id="cancelled")
        counted = await client.start(programs.counts, 1, id="counts")
        first = counted.id
        await client.start("local-output", None, id="local")
        await until(lambda: _sleep(open_, stopped))
        await stopped.cancel("enough")
        await whole.result(timeout="60s")
        fork = await client.get("fails").fork(id="fork", from_step="charge")
        for name in ("fails", "cancelled", "counts", "local", "fork"):
            await client.get(name).wait(timeout="60s")
        runs = {name: client.get(name) for name in NAMES} | {"counts": client.get(first), "fork": client.get(fork.id)}
        return {name: await History.fetch(client, run) for name, run in runs.items()}


async def _sleep(*runs: Run[Any]) -> bool:
    return {await run.status() for run in runs} == {RunStatus.SLEEPING}


def written(history: History) -> WrittenTest:
    _, seen = replay_seeing(history, programs.WORKFLOWS)
    workflow = next(each for each in programs.WORKFLOWS if each.name == history.workflow_type)
    return write_test(history, workflow, seen, f"kagzi export {history.workflow_id} --pytest")


def run_test(file: WrittenTest) -> None:
    scope: dict[str, Any] = {}
    exec(compile(file.source, "test_exported.py", "exec"), scope)  # noqa: S102  it is our own
    scope[file.test]()


@pytest.mark.parametrize("name", NAMES)
def test_the_test_of_a_recorded_run_passes_as_it_is(histories: dict[str, History], name: str) -> None:
    run_test(written(histories[name]))


_OPTIONS = ("--isolated", "--no-cache", "--target-version", "py311")
_OWN = ("--config", 'lint.isort.known-first-party=["tests"]')


def test_ruff_leaves_the_tests_as_they_are(histories: dict[str, History], tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"test_{name}.py").write_text(written(histories[name]).source)
    ruff = str(Path(sys.executable).parent / "ruff")
    for command in (["format", "--check"], ["check", "--select", "E4,E7,E9,F,I,B,UP", *_OWN]):
        done = subprocess.run(
            [ruff, *command, *_OPTIONS, str(tmp_path)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


CHARGE = 'await ctx.step("charge").run(decline, customer)'
CHANGES = {
    "another step": ("fails", 'ctx.step("charge")', 'ctx.step("charge-card")'),
    "another argument": ("fails", 'run(price, Item("cup"))', 'run(price, Item("jug"))'),
    "a step less": ("fails", '    await ctx.step("price").run(price, Item("cup"))\n', ""),
    "a step more": ("fails", CHARGE, f'await ctx.step("vat").run(price, Item("cup"))\n    {CHARGE}'),
    "another end": ("fails", CHARGE, f"try:\n        {CHARGE}\n    except StepError:\n        pass"),
    "another keyword": ("everything", "discount=0.5", "discount=0.25"),
    "another output": ("everything", '"noted": noted', '"noted": noted.lower()'),
    "another kind of call": ("everything", 'ctx.step("long").run(long_text)', 'ctx.sleep("long", "1s")'),
    "not waiting": ("waits", "return await ctx.wait_for(sent)", 'return Item("none")'),
    "not continuing": ("counts", "if number:", "if number > 1:"),
}


@pytest.fixture
def programs_module() -> Iterator[types.ModuleType]:
    """The module of the workflows, which a test may replace."""
    yield programs
    sys.modules[programs.__name__] = programs


@pytest.mark.parametrize(("name", "old", "new"), CHANGES.values(), ids=CHANGES)
def test_it_fails_when_the_workflow_is_changed(
    histories: dict[str, History], programs_module: types.ModuleType, name: str, old: str, new: str
) -> None:
    file = written(histories[name])
    source = inspect.getsource(programs_module)
    assert source.count(old) >= 1
    changed = types.ModuleType(programs_module.__name__)
    changed.__file__ = programs_module.__file__
    sys.modules[changed.__name__] = changed
    exec(compile(source.replace(old, new), str(changed.__file__), "exec"), vars(changed))  # noqa: S102  it is our own
    with pytest.raises(AssertionError):
        run_test(file)


def test_long_values_stand_below_the_test(histories: dict[str, History]) -> None:
    source = written(histories["everything"]).source
    assert "returns=LONG," in source
    assert source.index("LONG = {") > source.index("assert replay.output")
    assert max(map(len, source.splitlines())) < 300


def test_what_stands_in_it_reads_as_it_was_written(histories: dict[str, History]) -> None:
    source = written(histories["everything"]).source
    assert 'Order(\n            customer="ada",\n            items=[' in source
    assert 'run.signal("sent", Item(sku="kettle", quantity=1), at="' in source
    assert "    # attempt 1: ConnectionError: attempt 1\n" in source
    assert 'raises=ConnectionError("attempt 2"),\n        exhausted=True,\n        attempts=2,' in source
    assert 'labels={"team": "a"},\n        context={"x": [1]},' in source
    fails = written(histories["fails"]).source
    assert 'raises=NonRetryable("the card of \'ada\' was \\"declined\\""),' in fails
    assert "def test_fails() -> None:" in fails


def test_a_workflow_without_a_name_in_its_module_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="has no name in any module"):
        home_of(programs.make_local())

"""What lint reads beside the workflow itself: helpers by the names they are imported under, methods, nested functions,
other modules of the project; and what it leaves alone."""

from pathlib import Path

import pytest

from kagzi.sdk.lint.linting import UnreadableError, lint
from tests.sdk.lint.marked import HEAD, linted, markers

PACKAGE = {
    "app/__init__.py": "from .tools import stamp as exported\n",
    "app/tools.py": """
import time
from . import deep

def stamp() -> float:
    return time.time()  # <- clock

def unused() -> float:
    return time.time()

class Prices:
    def __init__(self) -> None:
        self.at = time.time()  # <- clock

    def total(self) -> float:
        return self._rate() * 2

    def _rate(self) -> float:
        return deep.chance()

    @staticmethod
    def fixed(text: str) -> int:
        return hash(text)  # <- random
""",
    "app/deep.py": "import random\n\ndef chance() -> float:\n    return random.random()  # <- random\n",
    "app/state.py": "CACHE: dict[str, int] = {}\n",
    "app/flows.py": HEAD
    + """
from app import tools as t, exported
from .state import CACHE
from . import state

@workflow
async def flow(ctx: Context) -> None:
    t.stamp()
    exported()
    prices = t.Prices()
    prices.total()
    t.Prices.fixed("a")
    CACHE["x"] = 1  # <- global-state
    state.CACHE.clear()  # <- global-state
""",
}


def test_helpers_are_followed_through_modules_classes_and_reexports(tmp_path: Path) -> None:
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    places = [
        (str(Path(each.file).relative_to(tmp_path)), each.line, each.rule)
        for each in lint([tmp_path / "app/flows.py"], None).findings
    ]
    expected = [(name, line, rule) for name, text in sorted(PACKAGE.items()) for line, rule in markers(text)]
    assert places == expected


def test_the_way_to_a_helper_is_told(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
import time

def inner() -> float:
    return time.time()

def outer() -> float:
    return inner()

@workflow
async def flow(ctx: Context) -> float:
    return outer()
"""
    )
    (tmp_path / "flow.py").write_text(program)
    (finding,) = lint([tmp_path / "flow.py"], None).findings
    assert [(call.function, call.line) for call in finding.called_from] == [("outer", 13), ("inner", 9)]
    assert "(Workflow 'flow' calls outer() at " in finding.advice


REACHED = """
import asyncio, functools, time

async def outer(ctx: Context, fn) -> None:
    fn()
    await ctx.step("x").run(fn)

def called() -> float:
    return time.time()  # <- clock

def only_a_step() -> float:
    return time.time()

def endless(n: int) -> int:
    return endless(n + 1)

async def branch(context, name: str) -> None:
    context.sleep(name, "1s")  # <- not-awaited

@workflow
async def flow(ctx: Context) -> None:
    async def task() -> None:
        time.monotonic()  # <- clock

    async def never() -> None:
        time.monotonic()

    asyncio.create_task(task())
    await outer(ctx, called)
    await branch(ctx, "a")
    await ctx.step("a").run(only_a_step)
    await ctx.step("b").run(functools.partial(only_a_step))
    await ctx.map("c", [1], only_a_step)
    endless(1)

class Shop:
    @workflow
    async def buy(self, ctx: Context) -> None:
        self.stamp()

    def stamp(self) -> float:
        return time.time()  # <- clock

async def plain(ctx: Context) -> float:
    return time.time()  # <- clock

worker = Worker(workflows=[("plain", plain)])

async def made(ctx: Context) -> float:
    return time.time()  # <- clock

known = workflow("made")(made)

def factory():
    import time as clock

    @workflow
    async def inside(ctx: Context) -> float:
        match ctx.workflow_id:
            case "a" if clock.time():  # <- clock
                return 1
            case time:
                return time.time()
"""


def test_what_is_workflow_code_and_what_is_a_step(tmp_path: Path) -> None:
    assert linted(HEAD + REACHED, tmp_path) == markers(HEAD + REACHED)


def test_without_a_workflow_nothing_is_found(tmp_path: Path) -> None:
    assert linted("import time\ntime.time()\n\ndef f() -> float:\n    return time.time()\n", tmp_path) == []


@pytest.mark.parametrize("text", ["def broken(:\n", "x = '\x00'\n"])
def test_what_is_not_python_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"flow\.py"):
        linted(text, tmp_path)


COLLECTIONS = {
    "app/__init__.py": "",
    "app/tools.py": """
import time
from kagzi import Context

def early(ctx: Context) -> float:
    return time.time()  # <- clock

def late(ctx: Context) -> float:
    return time.monotonic()  # <- clock

def never(ctx: Context) -> float:
    return time.time()

HANDLERS = {"early": early, "late": late}
LISTED = [never]
""",
    "app/flows.py": HEAD
    + """
import random
from . import tools
from .tools import HANDLERS

async def first(ctx: Context) -> int:
    return hash("a")  # <- random

async def second(ctx: Context) -> float:
    return random.random()  # <- random

def third(ctx: Context) -> float:
    return random.random()  # <- random

def fourth(ctx: Context) -> float:
    return random.random()  # <- random

def fifth(ctx: Context) -> float:
    return random.random()  # <- random

async def body(number: int) -> float:
    return random.random()

def unused(ctx: Context) -> float:
    return random.random()

STAGES = (first, second)
BODIES: dict[str, object] = {"body": body}
THIRD = {"third": third}

def each_of(ctx: Context, functions: list[object]) -> None:
    for function in functions:
        function(ctx)

@workflow
async def flow(ctx: Context, kind: str) -> None:
    HANDLERS[kind](ctx)
    tools.LISTED.count(1)
    for stage in STAGES:
        await stage(ctx)
    STAGES[0](ctx)  # <- not-awaited
    handler = THIRD.get(kind)
    handler(ctx)
    for name, function in {"fourth": fourth}.items():
        function(ctx)
    each_of(ctx, [fifth])
    [random.random][0]()  # <- random
    await ctx.step("body").run(BODIES[kind], 1)
""",
}


def test_functions_in_lists_and_dicts_are_followed(tmp_path: Path) -> None:
    for name, text in COLLECTIONS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    places = [
        (str(Path(each.file).relative_to(tmp_path)), each.line, each.rule)
        for each in lint([tmp_path / "app/flows.py"], None).findings
    ]
    assert places == [(name, line, rule) for name, text in sorted(COLLECTIONS.items()) for line, rule in markers(text)]

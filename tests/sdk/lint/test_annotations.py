"""Types without a JSON form, as the SDK's own codec sees them."""

import importlib.util
import sys
from pathlib import Path

import pytest

from kagzi.sdk.lint.linting import Linted, lint
from tests.sdk.lint.marked import HEAD, markers

PROGRAM = (
    HEAD
    + """
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

class Plain: ...

@dataclass
class Order:
    at: datetime
    total: float

@dataclass
class Wrong:
    plain: list[Plain]

class Model(BaseModel):
    x: int

go = Signal("go", Order)
stop = Signal("stop", Plain)  # <- unserialisable

def connect(host: str) -> socket.socket:  # <- unserialisable
    return socket.socket()

def use(connection: socket.socket, callback: Callable[[], None]) -> Order | None: ...

@step
async def pages() -> "Iterator[int]": ...  # <- unserialisable

async def anything(): ...

async def models() -> list[Model | Order]: ...

def unused() -> Plain: ...

def opened() -> socket.socket: ...  # <- unserialisable

BODIES = {"opened": opened}

@workflow
async def right(ctx: Context, order: Order) -> dict[str, Model]:
    await ctx.step("a").run(anything)
    await ctx.step("b").run(models)
    await ctx.step("c").run(use, None, print)
    await ctx.step("d").run(BODIES["opened"])
    return {}

@workflow
async def wrong(
    ctx: Context,
    input: Wrong,  # <- unserialisable
) -> Path:  # <- unserialisable
    await pages()
    await ctx.step("connect").run(connect, "x")
    return Path()
"""
)


def load(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def linted(text: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Linted:
    monkeypatch.setitem(sys.modules, "typed_flow", sys)  # to be taken away afterwards
    (directory / "typed_flow.py").write_text(text)
    return lint([directory / "typed_flow.py"], load)


def test_inputs_outputs_results_and_signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = linted(PROGRAM, tmp_path, monkeypatch).findings
    assert [(each.line, each.rule) for each in findings] == markers(PROGRAM)
    assert [each.message for each in findings] == [
        "a signal 'stop' cannot be sent: Plain has no JSON form.",
        "the result of step function connect() cannot be recorded: socket has no JSON form.",
        "the result of step function pages() cannot be recorded: Iterator has no JSON form.",
        "the result of step function opened() cannot be recorded: socket has no JSON form.",
        "the input of workflow 'wrong' cannot be recorded: Plain has no JSON form.",
        "the output of workflow 'wrong' cannot be recorded: Path has no JSON form.",
    ]
    assert all(each.instead.startswith("Use a dataclass, ") for each in findings)


def test_a_suppression_at_the_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        HEAD
        + """
@workflow
async def flow(ctx: Context) -> range:  # kagzi: ignore[unserialisable] never returns
    raise ValueError
"""
    )
    assert linted(program, tmp_path, monkeypatch).findings == ()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise OSError('no such place')", "no such place"),
        ("import asyncio\nasyncio.run(flow.fn(None))", "it runs a program when it is imported, at line 6"),
    ],
)
def test_a_module_that_cannot_be_imported_is_linted_all_the_same(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"{HEAD}import time\n@workflow\nasync def flow(ctx: Context) -> range: return time.time()\n{code}\n"
    result = linted(program, tmp_path, monkeypatch)
    assert [each.rule for each in result.findings] == ["clock"]
    assert [(Path(each.file).name, each.reason) for each in result.not_imported] == [("typed_flow.py", reason)]

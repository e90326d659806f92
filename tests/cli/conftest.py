"""A server and a worker as real processes, shared by the tests of a module; every run has a name of its own. Commands
that only ask run in the test's own process."""

import gc
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.kagzi_inline import kagzi_inline
from tests.support.kagzi_process import running


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Commands that serve set the collector of their process, which is the test's own where they run in it."""
    before = gc.get_threshold()
    yield
    if gc.get_threshold() != before:
        gc.set_threshold(*before)
        gc.unfreeze()


FLOWS = """
import asyncio
from pathlib import Path
from typing import Any
from kagzi import Context, NonRetryable, Retry, Signal, workflow


@workflow
async def echo(ctx: Context, value: object) -> object:
    return await ctx.step("echo").run(lambda: value)


@workflow
async def nothing(ctx: Context) -> None:
    return None


async def refuse() -> None:
    raise NonRetryable("the card is stolen")


@workflow
async def fails(ctx: Context) -> None:
    await ctx.step("charge").run(refuse)


tries = 0


async def flaky() -> str:
    global tries
    tries += 1
    if tries % 2:
        raise ConnectionError("the line is bad")
    return "at last"


@workflow
async def retries(ctx: Context) -> str:
    return await ctx.step("call", retry=Retry.fixed(3, "1ms")).run(flaky)


@workflow
async def sleeps(ctx: Context, how_long: str) -> str:
    await ctx.sleep("nap", how_long)
    return "awake"


decision = Signal("decision", dict[str, Any])


@workflow
async def approval(ctx: Context, amount: int) -> object:
    ctx.set_status(f"waiting for a human: {amount} EUR", progress=0.5)
    ctx.set_state({"amount": amount, "asked": ["ada"]})
    answer = await ctx.wait_for(decision)
    return answer["by"]


go = Signal("go", int)


@workflow
async def w(ctx: Context) -> int:
    return await ctx.wait_for(go)


unregistered = {"go": go}  # workers do not find a signal in here: servers cannot check its values


@workflow
async def w_unchecked(ctx: Context) -> int:
    return await ctx.wait_for(unregistered["go"])


@workflow
async def family(ctx: Context, names: list[str]) -> list[object]:
    return await ctx.parallel(ctx.child(echo, name) for name in names)


@workflow
async def guards(ctx: Context) -> int:
    return await ctx.child(w)


def read(path: str) -> str:
    return Path(path).read_text()


@workflow
async def reads(ctx: Context, path: str) -> str:
    prefix = await ctx.step("prefix").run(lambda: "it says ")
    text = await ctx.step("read", retry=Retry.none()).run(read, path)
    return prefix + text
"""


class Installation(NamedTuple):
    address: str
    directory: Path

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return kagzi_inline(*arguments, stdin=stdin, env={"KAGZI_ADDRESS": self.address})


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("installation")
    (directory / "flows.py").write_text(FLOWS)
    options = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
    with running("server", "--db", f"sqlite:///{directory / 'kagzi.db'}", *options) as server:
        address = server.says(r"kagzi server ready .*?grpc=(\S+)")[1]
        with running("worker", str(directory / "flows.py"), "--address", address) as worker:
            worker.says(r"worker \S+ serves")
            yield Installation(address, directory)

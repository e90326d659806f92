"""The pytest plugin, as users have it: in a project of their own, in a process of its own."""

import subprocess
import sys
from pathlib import Path

from kagzi.testing import TestEnv
from tests.support.kagzi_process import clean_environment

WORKFLOWS = """
from kagzi import Context, workflow

async def greet(name: str) -> str:
    return f"hello {name}"

@workflow
async def hello(ctx: Context, name: str) -> str:
    await ctx.sleep("pause", "3 days")
    return await ctx.step("greet").run(greet, name)
"""
TESTS = """
import asyncio, unittest
import pytest
from kagzi.testing import TestEnv
from flows import hello

@pytest.mark.asyncio
async def test_strict(kagzi_env):
    assert await kagzi_env.run(hello, "a") == "hello a"

@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("n", [1, 2])
async def test_in_a_loop_of_the_session(kagzi_env, n):
    assert len([run async for run in kagzi_env.list()]) == 0
    assert await kagzi_env.run(hello, "s") == "hello s"

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_anyio(kagzi_env):
    assert await kagzi_env.run(hello, "b") == "hello b"

class InClass(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.env = await self.enterAsyncContext(TestEnv.open())

    async def test_unittest(self):
        self.assertEqual(await self.env.run(hello, "c"), "hello c")

def test_sync(kagzi_env):
    asyncio.run(self_made(kagzi_env))

async def self_made(env):
    assert await env.run(hello, "d") == "hello d"
"""
SESSION = """
import pytest
from flows import hello

@pytest.mark.parametrize("n", [1, 2])
async def test_shared(kagzi_env, n):
    await kagzi_env.run(hello, "e")
    assert len([run async for run in kagzi_env.list()]) == n
"""
UNMARKED = """
async def test_nobody_runs(kagzi_env):
    pass
"""


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--rootdir", ".", *arguments],
        cwd=directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _project(directory: Path, tests: str, ini: str = "") -> None:
    (directory / "flows.py").write_text(WORKFLOWS)
    (directory / "test_flows.py").write_text(tests)
    (directory / "conftest.py").write_text((Path(__file__).parents[3] / "conftest.py").read_text())
    (directory / "pytest.ini").write_text(f"[pytest]\n{ini}")


def test_it_works_with_pytest_asyncio_in_strict_mode_with_anyio_and_with_unittest(tmp_path: Path) -> None:
    _project(tmp_path, TESTS)
    done = run_pytest(tmp_path)
    assert "6 passed" in done.stdout, done.stdout + done.stderr


def test_its_environment_can_be_that_of_the_session(tmp_path: Path) -> None:
    _project(
        tmp_path,
        SESSION,
        "asyncio_mode=auto\nasyncio_default_test_loop_scope=session\n"
        "asyncio_default_fixture_loop_scope=session\nkagzi_env_scope=session\n",
    )
    done = run_pytest(tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_an_async_test_that_nobody_runs_says_what_to_install(tmp_path: Path) -> None:
    _project(tmp_path, UNMARKED)
    done = run_pytest(tmp_path, "-p", "no:asyncio", "-p", "no:anyio")
    assert "Install pytest-asyncio" in done.stdout, done.stdout + done.stderr


async def test_the_project_itself_has_it(kagzi_env: TestEnv) -> None:
    assert type(kagzi_env) is TestEnv

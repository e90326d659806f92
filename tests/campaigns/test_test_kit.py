"""What testing costs: a thousand workflow tests, three days of waiting, and the plugin at pytest's start."""

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.kagzi_process import clean_environment

from .figures import Figures, number
from .workflow_tests import workflow_tests

TESTS = int(number("TESTS", 1_000))
ROUNDS = int(number("ROUNDS", 9))
TESTS_MAX_S = 60.0
WAIT_MAX_S = 0.3
PLUGIN_MAX_S = 0.1
_WAITING = """
import asyncio, time
from kagzi.testing import TestEnv
from test_many import approval

async def wait() -> float:
    began = time.perf_counter()
    async with TestEnv.open() as env:
        run = await env.start(approval, 1)
        assert await run.result() == "expired"
    return time.perf_counter() - began

print(asyncio.run(wait()), asyncio.run(wait()))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_many.py").write_text(workflow_tests(TESTS))
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "test_nothing.py").write_text("def test_nothing() -> None: ...\n")
    return tmp_path


def _run(project: Path, *arguments: str) -> tuple[float, str]:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=clean_environment(), capture_output=True, text=True, check=False
    )
    took_s = time.monotonic() - began
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    return took_s, done.stdout


def _processor_s() -> float:
    """Of all processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.timeout(600)
@pytest.mark.parametrize("processes", [0, 2])
def test_a_thousand_workflow_tests(project: Path, processes: int) -> None:
    before = _processor_s()
    took_s, printed = _run(project, "-m", "pytest", "-q", "-n", str(processes), "test_many.py")
    assert f"{TESTS} passed" in printed
    figures = {"seconds": round(took_s, 1), "processor_s": round(_processor_s() - before, 1)}
    Figures("test-kit").put(f"{TESTS} workflow tests, -n {processes}", figures)
    assert took_s < TESTS_MAX_S


def test_three_days_of_waiting(project: Path) -> None:
    """The first environment of a process makes the database that the others are copied from."""
    rounds = [[float(each) for each in _run(project, "-c", _WAITING)[1].split()] for _ in range(ROUNDS)]
    first_s, second_s = (statistics.median(each) for each in zip(*rounds, strict=True))
    Figures("test-kit").put("three days of waiting", {"first_s": round(first_s, 3), "second_s": round(second_s, 3)})
    assert first_s < WAIT_MAX_S


@pytest.mark.timeout(600)
def test_the_plugin_at_the_start_of_pytest(project: Path) -> None:
    collect = ("-m", "pytest", "-q", "--collect-only", "empty")
    with_s: list[float] = []
    without_s: list[float] = []
    for _ in range(ROUNDS):  # interleaved; processor time, which others on the machine change less
        before = _processor_s()
        _run(project, *collect)
        between = _processor_s()
        _run(project, *collect, "-p", "no:kagzi")
        with_s.append(between - before)
        without_s.append(_processor_s() - between)
    more_s = statistics.median(with_s) - statistics.median(without_s)
    figures = {
        "with_plugin_s": round(statistics.median(with_s), 3),
        "without_s": round(statistics.median(without_s), 3),
        "more_ms": round(more_s * 1_000),
    }
    Figures("test-kit").put("pytest --collect-only", figures)
    assert more_s < PLUGIN_MAX_S

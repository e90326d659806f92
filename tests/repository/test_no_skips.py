"""A run that skipped something is green for a person and red for a machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

def test_that_passes():
    pass

@pytest.mark.skip(reason="no moon tonight")
def test_that_skips():
    pass

@pytest.mark.xfail(reason="known")
def test_that_is_known_to_fail():
    assert False
"""


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize(("ci", "code"), [("true", pytest.ExitCode.TESTS_FAILED), ("", pytest.ExitCode.OK)])
def test_a_skip_fails_the_run_under_ci(tmp_path: Path, ci: str, code: int, processes: str) -> None:
    (tmp_path / "test_sample.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-p", "tests.conftest", "-n", processes],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code, run.stdout
    assert ("test_sample.py::test_that_skips" in run.stdout) == bool(ci)

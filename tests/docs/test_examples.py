"""The programs in examples/ run as they are: those whose features exist."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT
from tests.support.kagzi_process import clean_environment

EXAMPLES = ROOT / "examples"


def test_hello_runs_embedded_as_it_is(tmp_path: Path) -> None:
    for _ in range(2):  # the second time on the file that the first one left
        done = subprocess.run(
            [sys.executable, EXAMPLES / "e01_hello.py"],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "HELLO, WORLD!\n"), done.stderr


RUNNABLE = ("e00_min", "e01_hello", "e02_order", "e03_parallel", "e04_race", "e05_approval", "e06_child", "e07_agent")


@pytest.mark.parametrize("name", RUNNABLE)
def test_runnable_examples_import_nothing_that_is_missing(name: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    subprocess.run(
        [sys.executable, "-c", f"import examples.{name}"], cwd=tmp_path, env=clean_environment(), check=True, timeout=60
    )

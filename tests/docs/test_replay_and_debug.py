"""The page about replaying and debugging: its program, its commands and its test."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.snippets import blocks, write_files
from tests.support.kagzi_inline import kagzi_inline
from tests.support.kagzi_process import clean_environment
from tests.support.timeouts import LOADED_MACHINE_S

PAGE = "docs/how-to/replay-and-debug.md"
_VARYING = re.compile(r'run_id="[^"]*"|created_at="[^"]*"|at="[^"]*"|\+\d+ms|(?<= )\d+ms')


def python(directory: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=clean_environment(), capture_output=True, text=True,
        timeout=LOADED_MACHINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def alike(text: str) -> list[str]:
    """Its words, but for ids, times and the widths of columns."""
    return _VARYING.sub("", text).split()


def test_the_page_says_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(PAGE, tmp_path)
    python(tmp_path, "orders.py")
    python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_order.py")
    environment = {"KAGZI_ADDRESS": f"sqlite:///{tmp_path}/orders.db"}
    code = ("--code", "orders.py")

    replayed = kagzi_inline("replay", "order-1", *code, env=environment)
    shown = next(block.text for block in blocks(PAGE) if "replay order-1 --code" in block.text)
    assert alike(replayed.stdout) == alike(shown.partition("\n")[2])

    exported = kagzi_inline("export", "order-1", "--pytest", *code, env=environment)
    test = next(block.text for block in blocks(PAGE) if block.name == "test_order.py")
    assert alike(exported.stdout.rpartition('"""\n')[2]) == alike(test)

    fork = ("fork", "order-1", "--from-step", "charge", "--output", "add-tax=90.0", "--id", "order-1b")
    assert kagzi_inline(*fork, env=environment).returncode == 0
    assert "first difference: step add-tax" in kagzi_inline("diff", "order-1b", env=environment).stdout

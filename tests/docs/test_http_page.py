"""The curl lines of docs/how-to/http.md do what the page says, against a real server with the page's worker. `...` in
what it shows stands for anything."""

import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.snippets import blocks, write_files
from tests.support.kagzi_process import clean_environment, running

PAGE = "docs/how-to/http.md"
ADDRESS = "http://127.0.0.1:8420"
CURL = Path(__file__).parent / "small_curl.py"


class Line(NamedTuple):
    command: str
    shown: str


def lines() -> list[Line]:
    parts = [
        part
        for block in blocks(PAGE)
        if block.language == "console"
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    ]
    return [Line(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    directory = tmp_path_factory.mktemp("page")
    write_files(PAGE, directory)
    with running("dev", "hello.py", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", cwd=directory) as dev:
        yield dev.says(r"^  dashboard +(\S+)$")[1]


@pytest.fixture
def small_path(tmp_path: Path) -> str:
    """With a small curl of our own before any other."""
    small = tmp_path / "bin" / "curl"
    small.parent.mkdir()
    small.write_text(f"#!{sys.executable}\n{CURL.read_text()}")
    small.chmod(0o700)
    return f"{small.parent}:{clean_environment()['PATH']}"


def check(commands: Sequence[Line], address: str, path: str, directory: Path) -> None:
    script = [
        command if re.match(r"\w+=", command) else f"{command} > {number}.out"
        for number, (command, _) in enumerate(commands)
    ]
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(script).replace(ADDRESS, address)],
        cwd=directory,
        env=clean_environment() | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for number, (command, shown) in enumerate(commands):
        output = directory / f"{number}.out"
        printed = output.read_text().replace(address, ADDRESS) if output.exists() else ""
        pattern = ".*?".join(map(re.escape, shown.rstrip("\n").split("...")))
        assert re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL), f"$ {command}\n{printed}"


def test_the_page_as_it_stands(address: str, small_path: str, tmp_path: Path) -> None:
    system_path = clean_environment()["PATH"]
    has_curl = shutil.which("curl", path=system_path) is not None
    assert len(lines()) > 10
    check(lines(), address, system_path if has_curl else small_path, tmp_path)


def test_a_machine_without_curl_tries_them_too(address: str, small_path: str, tmp_path: Path) -> None:
    commands = [line for line in lines() if "size=5000" in line.command or "runs/nobody" in line.command]
    assert len(commands) == 2
    check(commands, address, small_path, tmp_path)

"""Programs in README and tutorial run as they stand and print what the page says."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT, blocks, printed_by, write_files
from tests.support.kagzi_process import clean_environment, kagzi, running

TUTORIAL = "docs/tutorial.md"
SYNC = "docs/how-to/sync.md"  # whose program needs a server
PAGES = [*sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")), "README.md"]
WRITTEN_BY_HAND = [page for page in PAGES if not page.startswith("docs/reference/python/")]
LINE = 120
NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


def python(name: str, directory: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, name],
        cwd=directory,
        env={**clean_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def programs() -> list[tuple[str, str]]:
    """Every named program of a page that is followed by what it prints."""
    named: list[tuple[str, str]] = []
    for page in PAGES:
        for block, after in pairwise(blocks(page)):
            if page != SYNC and block.language == "python" and block.name and after.language == "text":
                named.append((page, block.name))
    return named


def test_the_pages_have_programs() -> None:
    assert len(programs()) >= 10


@pytest.mark.parametrize(("page", "name"), programs())
def test_a_pages_program_prints_what_it_says(page: str, name: str, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    assert python(name, tmp_path) == printed_by(page, name)


def test_the_readmes_embedded_program(tmp_path: Path) -> None:
    write_files("README.md", tmp_path)
    assert python("embedded.py", tmp_path) == "Hello, world!\n"


def test_the_readmes_first_workflow_by_its_own_commands(tmp_path: Path) -> None:
    write_files("README.md", tmp_path)
    (console,) = (block.text for block in blocks("README.md") if block.language == "console")
    command, expected = console.split("\n", 1)
    with running("dev", "hello.py", *NO_PORTS, cwd=tmp_path) as dev:
        address = dev.says(r"^  server +(\S+)$")[1]
        words = shlex.split(command.removeprefix("$ "))
        assert words[0] == "kagzi"
        assert kagzi(*words[1:], env={"KAGZI_ADDRESS": address}).stdout == expected


def test_the_program_without_async(tmp_path: Path) -> None:
    write_files("README.md", tmp_path)
    write_files(SYNC, tmp_path)
    with running("dev", "hello.py", *NO_PORTS, cwd=tmp_path) as dev:
        address = dev.says(r"^  server +(\S+)$")[1]
        assert python("ask.py", tmp_path, KAGZI_ADDRESS=address) == printed_by(SYNC, "ask.py")


def test_the_tutorials_crash_test_loads(tmp_path: Path) -> None:
    write_files(TUTORIAL, tmp_path)
    with running("dev", "patient.py", *NO_PORTS, cwd=tmp_path) as dev:
        address = dev.says(r"^  server +(\S+)$")[1]
        kagzi("start", "patient", "ada", "--id", "my-run", "--address", address)
        dev.says("^before: ada$")
        shown = kagzi("get", "my-run", "--steps", "--address", address)
        assert "before" in shown.stdout


@pytest.mark.parametrize("page", PAGES)
def test_python_in_the_documentation_is_python(page: str) -> None:
    for block in blocks(page):
        if block.language == "python":
            compile(f"async def page():\n{indented(block.text)}", page, "exec")


@pytest.mark.parametrize("page", [*PAGES, "ARCHITECTURE.md", "CONTRIBUTING.md", "bench/README.md", "CHANGELOG.md"])
def test_links_within_the_project_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link and "NNNN" not in link]
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", [*WRITTEN_BY_HAND, "ARCHITECTURE.md", "CONTRIBUTING.md", "bench/README.md"])
def test_prose_is_wrapped_at_120(page: str) -> None:
    """Code shows what programs print, and a row of a table is one line."""
    prose = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > LINE and not line.startswith("|")] == []


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())

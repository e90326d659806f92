"""The dashboard of a fresh clone on a machine that has python3 and make only; and of its wheel, where no Node is."""

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "bash", "make", "awk", "find", "mkdir", "touch", "rm", "env", "git", "uname", "cat", "test", "ls")

pytestmark = pytest.mark.timeout(1_200)  # everything is downloaded and installed


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH without Node, npm and browsers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    (folder / "python3").symlink_to(sys.base_prefix + "/bin/python3")
    return str(folder)


@contextmanager
def serving(command: list[str], folder: Path, env: dict[str, str]) -> Iterator[str]:
    """The address that it prints."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if match := re.search(r"(?:dashboard\s+|http=)(http://\S+)", line):
                yield match[1]
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)
        process.stdout.close()


def has_dashboard(url: str) -> bool:
    page = httpx.get(url).text
    assert httpx.get(f"{url}/static/style.css").status_code == (200 if 'id="app"' in page else 404)
    return 'id="app"' in page


def clone(to: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", ROOT, to], check=True)
    return to


def test_02_make_dev_of_a_fresh_clone_shows_the_dashboard(tmp_path: Path, bare_path: str) -> None:
    env = {**os.environ, "PATH": bare_path}
    ports = "--listen 127.0.0.1:0 --http 127.0.0.1:0"
    with serving(["make", "dev", f"ARGS={ports}"], clone(tmp_path / "clone"), env) as url:
        assert has_dashboard(url)


def test_02_without_a_network_the_plain_page_says_what_to_run(tmp_path: Path, bare_path: str) -> None:
    folder = clone(tmp_path / "clone")
    # What pip would have brought is that of this checkout; npm has brought nothing.
    code = "import sys; sys.path.insert(0, 'src'); from kagzi.cli.main import main; main()"
    command = [sys.executable, "-c", code, "dev", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    env = {**os.environ, "PATH": bare_path, "PYTHONPATH": str(folder / "src")}
    with serving(command, folder, env) as url:
        assert not has_dashboard(url)
        assert "make web" in httpx.get(url).text


def test_02_the_wheel_serves_the_dashboard_where_there_is_no_node(tmp_path: Path, bare_path: str) -> None:
    wheels = tmp_path / "wheels"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)], cwd=ROOT, check=True)
    (wheel,) = wheels.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    pip = [tmp_path / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet"]
    env = {**os.environ, "PATH": bare_path}
    subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", wheel], check=True, env=env)
    command = [str(tmp_path / "venv" / "bin" / "kagzi"), "server", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with serving(command, tmp_path, env) as url:
        assert has_dashboard(url)

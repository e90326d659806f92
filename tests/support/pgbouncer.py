"""A PgBouncer in transaction mode in front of any PostgreSQL, for tests that want to know what outlives a transaction.

    with PgBouncer(databases.url) as pooler:
        url = pooler.through(databases.create())

The binary is the distribution's (`make pgbouncer` installs it where there is apt). As root it runs as `nobody`:
PgBouncer refuses to run as root. It ends with this process, also when that is killed.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from tests.support.postgres import LAUNCHER
from tests.support.timeouts import LOADED_MACHINE_S

START_TIMEOUT_S = LOADED_MACHINE_S
STOP_TIMEOUT_S = LOADED_MACHINE_S
_PLACES = ("/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer")

_CONFIGURATION = """\
[databases]
* = {origin}

[pgbouncer]
pool_mode = transaction
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
max_client_conn = 1000
default_pool_size = {pool_size}
server_lifetime = 3600
log_connections = 0
log_disconnections = 0
logfile = {log}
pidfile =
"""


class PgBouncerAbsentError(Exception):
    """There is no pgbouncer on this machine."""


class PgBouncer:
    """Runs from `__enter__` to `__exit__`. `pool_size`: sessions of the server that all clients of a database share."""

    def __init__(self, origin: str, *, pool_size: int = 20) -> None:
        self._binary = _binary()
        self._port = _free_port()
        self._directory = Path(tempfile.mkdtemp(prefix="kagzi-pgbouncer-"))
        self._log = self._directory / "log"
        self._user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        configuration = self._directory / "pgbouncer.ini"
        configuration.write_text(
            _CONFIGURATION.format(origin=_origin(origin), port=self._port, pool_size=pool_size, log=self._log)
        )
        if self._user is not None:
            for path in (self._directory, configuration):
                os.chown(path, self._user, -1)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def through(self, url: str) -> str:
        """The same database and user as `url`, by way of this pooler. Nothing in it says that it is one."""
        parts = urlsplit(url)
        return f"postgresql://{parts.username}@127.0.0.1:{self._port}{parts.path}"

    def __enter__(self) -> Self:
        launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, "" if self._user is None else str(self._user)]
        self._process = subprocess.Popen(
            [*launcher, self._binary, "-q", self._directory / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        self._await_ready(self._process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)  # at once, whoever is connected
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_TIMEOUT_S)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                log_text = self._log.read_text(errors="replace") if self._log.exists() else "nothing"
                raise RuntimeError(f"pgbouncer did not start ({process.returncode}). It said: {log_text}")
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return


def _binary() -> str:
    binary = shutil.which("pgbouncer") or next((place for place in _PLACES if Path(place).exists()), None)
    if binary is None:
        raise PgBouncerAbsentError("pgbouncer is absent: install your distribution's package (`make pgbouncer` tries)")
    return binary


def _origin(url: str) -> str:
    """Where the server is, in PgBouncer's words; it keeps the client's choice of database and user."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    host = options.get("host") or parts.hostname or "127.0.0.1"
    port = options.get("port") or parts.port or 5432
    password = f" password={parts.password}" if parts.password else ""
    return f"host={host} port={port} user={parts.username}{password}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

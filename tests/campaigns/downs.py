"""What people see while the server or its database is down, second by second, and that everything goes on afterwards.

A client waits for a result, another one starts a run and has the patience for it, a third has the usual 30 s; at the
command line
`kagzi start --wait` waits, and `kagzi list` asks. What each is told is kept with its time since the fault began.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from kagzi import Kagzi, Unavailable
from tests.acceptance.cluster import Cluster
from tests.support.fork_server import REPOSITORY
from tests.support.polling import until
from tests.support.postgres import PostgresServer

from . import flows

Fault = Callable[[Cluster, PostgresServer], AbstractAsyncContextManager[None]]

STEP_S = 1.0  # of runs that are under way when the fault comes
AFTER_S = 120.0  # how long everything may take when it is over
FIRST_LINE_S = 10.0  # about 1 s on a quiet machine
NOISE = ("%5B", "ipv4:", "ipv6:", "failed to connect", "last error", "Traceback", "asyncpg", "/dev/shm", "/tmp/")


@asynccontextmanager
async def server_gone(cluster: Cluster, _database: PostgresServer) -> AsyncIterator[None]:
    cluster.servers[0].kill()
    yield
    await cluster.restart(0)


@asynccontextmanager
async def database_gone(_cluster: Cluster, database: PostgresServer) -> AsyncIterator[None]:
    database.kill()
    yield
    database.start()


@asynccontextmanager
async def database_frozen(_cluster: Cluster, database: PostgresServer) -> AsyncIterator[None]:
    """It accepts connections and says nothing: no error tells the server anything."""
    frozen = _family(database.pid or 0)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)


SAYS: dict[str, tuple[str, ...]] = {
    "server_gone": ("cannot reach the server at", "no response from the server at"),
    "database_gone": ("is running, but its database",),
    "database_frozen": ("is running, but its database",),
}


def _family(pid: int) -> list[int]:
    """A process and its children."""
    children: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == pid:
            children.append(int(stat.parent.name))
    return [pid, *children]


class Seen:
    """Lines with the seconds since the fault began."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.lines: list[tuple[float, str, str]] = []

    def begin(self) -> None:
        self._began = time.monotonic()

    def note(self, who: str, line: str) -> None:
        self.lines.append((time.monotonic() - self._began, who, line))

    def of(self, who: str) -> list[tuple[float, str]]:
        return [(at, line) for at, each, line in self.lines if each == who and at >= 0]

    @contextmanager
    def log(self) -> Any:
        seen = self

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                seen.note("log", f"{record.levelname} {record.getMessage()}")

        handler, logger = Handler(), logging.getLogger("kagzi.connection")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)


async def command(seen: Seen, who: str, *arguments: str) -> int:
    """`kagzi ...`, with what it prints. Returns its exit code."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAGZI_")}
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kagzi",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**environment, "PYTHONPATH": str(REPOSITORY / "src"), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
    )
    assert child.stdout is not None
    try:
        async for line in child.stdout:
            seen.note(who, line.decode().rstrip())
        return await child.wait()
    finally:
        if child.returncode is None:
            child.kill()


async def play(cluster: Cluster, database: PostgresServer, fault: Fault, seconds: float) -> dict[str, Any]:
    """Raises AssertionError if somebody is not told in time, is told the wrong thing, or does not go on afterwards."""
    address = cluster.servers[0].grpc
    seen = Seen()
    timeout = f"{seconds + AFTER_S:g}s"
    with seen.log():
        async with Kagzi.connect(address, call_timeout=timeout) as patient, Kagzi.connect(address) as usual:
            waits = ("start", "campaign-load", str(STEP_S), "--id", "terminal", "--wait", "--address", address)
            under_way = await patient.start(flows.load, STEP_S, id="under-way")
            waiting = asyncio.create_task(under_way.result(timeout=timeout))
            at_the_terminal = asyncio.create_task(command(seen, "start --wait", *waits))
            await _until_there(patient, "terminal")
            seen.begin()
            async with fault(cluster, database):
                starting = asyncio.create_task(patient.run(flows.load, 0.01, id="patient", timeout=timeout))
                giving_up = asyncio.create_task(_refusal(usual))
                listing = asyncio.create_task(command(seen, "list", "list", "--address", address))
                await asyncio.sleep(seconds)
            over_s = time.monotonic() - seen._began
            async with asyncio.timeout(AFTER_S):
                expected = sum(range(flows.STEPS))
                assert await starting == expected
                assert await waiting == expected
                assert await at_the_terminal == 0, seen.of("start --wait")
                error, list_code = await giving_up, await listing
            settled_s = time.monotonic() - seen._began - over_s
    _check(fault.__name__, seen, error, list_code, seconds)
    return {
        "fault_s": seconds,
        "cores": os.cpu_count(),
        "settled_s": round(settled_s, 1),
        "usual client": str(error),
        "list exit code": list_code,
        **{f"{at:5.1f} s {who} ({number})": line for number, (at, who, line) in enumerate(seen.lines) if at >= 0},
    }


async def _until_there(client: Kagzi, id: str) -> None:
    """Until a run has this id: whoever started it waits for it by now, or is about to."""

    async def there() -> bool:
        return id in [run.workflow_id async for run in client.list(limit=10)]

    await until(there, timeout_s=AFTER_S, every_s=0.1)


async def _refusal(client: Kagzi) -> Unavailable | None:
    try:
        await client.start(flows.load, 0.01, id="usual")
    except Unavailable as error:
        return error
    return None


def _check(fault: str, seen: Seen, error: Unavailable | None, list_code: int, seconds: float) -> None:
    says = SAYS[fault]

    def right(line: str) -> bool:
        return any(words in line.lower() for words in says)

    logged = [(at, line) for at, line in seen.of("log") if "responds again" not in line]
    assert logged, "nobody was told"
    assert logged[0][0] < FIRST_LINE_S, logged
    assert all(right(line) for _, line in logged), logged
    assert len(logged) < 3 + 2 * seconds / 10, "once for all, not once for each"
    waited = [
        line for _, line in seen.of("start --wait") if line.startswith("waiting:") and "responds again" not in line
    ]
    assert waited, seen.of("start --wait")
    assert all(map(right, waited)), waited
    if seconds > 40:  # longer than the usual patience
        assert error is not None
        assert right(str(error)), error
        assert "Tried for" in str(error)
        assert list_code == 4
    for _, _, line in seen.lines:
        assert not [noise for noise in NOISE if noise in line], line

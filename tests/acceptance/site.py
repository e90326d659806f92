"""A small installation of real processes: one server on SQLite, one on PostgreSQL, or two servers on one PostgreSQL."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from kagzi import Kagzi
from kagzi.sdk.client import Connecting
from tests.support.ledger import Entry, Ledger
from tests.support.processes import Process, Processes, ServerProcess

SETUPS = ("sqlite", "postgres", "two-servers")
TIMINGS = ("--lease", "2s", "--heartbeat", "400ms", "--reconnect-grace", "1s")
FLOWS = "tests.acceptance.flows"
PATIENCE_S = 60.0


class Site:
    """`servers` that run on one database, and a ledger that the bodies of steps write."""

    def __init__(self, processes: Processes, database: str, directory: Path) -> None:
        self._processes = processes
        self._database = database
        self.ledger = Ledger(directory / "ledger.jsonl")
        self.servers: list[ServerProcess] = []

    async def add_server(self, *options: str) -> ServerProcess:
        server = await self._processes.server(self._database, *TIMINGS, *options)
        self.servers.append(server)
        return server

    async def restart(self, index: int) -> ServerProcess:
        """The same server again, on the same port, after it was killed."""
        before = self.servers[index]
        await before.wait()
        server = await self._processes.server(self._database, *TIMINGS, "--listen", before.grpc)
        self.servers[index] = server
        return server

    @property
    def address(self) -> str:
        """All servers: whoever connects goes on with another one when his dies."""
        return ",".join(server.grpc for server in self.servers)

    async def worker(self, *options: str, address: str | None = None, **environment: str) -> Process:
        return await self._processes.worker(
            address or self.address, FLOWS, *options, KAGZI_TEST_LEDGER=str(self.ledger.path), **environment
        )

    def client(self, index: int | None = None) -> Connecting:
        return Kagzi.connect(self.address if index is None else self.servers[index].grpc)

    async def until(self, holds: Callable[[list[Entry]], bool], what: str) -> list[Entry]:
        """The ledger, as soon as it `holds`. Files have no signals: this looks a hundred times a second."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds(entries := self.ledger.entries()):  # noqa: ASYNC110  see above
                    await asyncio.sleep(0.01)
                return entries
        except TimeoutError:
            raise AssertionError(f"the ledger never showed {what}") from None


def check_done_is_done(entries: list[Entry]) -> int:
    """P2 for sequential runs: once the body of s3 has begun, s0..s2 are acknowledged and never begin again.

    Answers how many bodies were cut short and begun again, which is what a kill must have caused.
    """
    furthest: dict[str, int] = {}
    begun: dict[tuple[str, int], int] = {}
    for entry in entries:
        if entry.event != "begin":
            continue
        number = int(entry.step_id.removeprefix("s"))
        assert number >= furthest.get(entry.run_id, 0), f"an acknowledged step ran again: {entry}"
        furthest[entry.run_id] = number
        begun[entry.run_id, number] = begun.get((entry.run_id, number), 0) + 1
    return sum(count - 1 for count in begun.values())

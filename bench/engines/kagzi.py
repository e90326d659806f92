"""Kagzi: `kagzi server` and `kagzi worker` as users start them, on either store; and embedded."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from bench.engines.base import PROGRAMS, SLOTS, Engine
from bench.launch import Driver, Launched
from kagzi.cli.bench import flows
from kagzi.cli.bench.machine import describe_versions

DRIVER = PROGRAMS / "kagzi_driver.py"
FLOOD_IN_FLIGHT = 500
FLOOD_SECONDS = 3_600.0  # longer than any measurement


class _Kagzi(Engine):
    python: ClassVar[str] = sys.executable
    servers: ClassVar[int] = 1

    @classmethod
    def versions(cls) -> dict[str, str]:
        return {name: str(version) for name, version in describe_versions().items() if version}

    def start(self) -> None:
        """With several servers, the worker uses the first and the client the last."""
        addresses = [self._server(number) for number in range(self.servers)]
        self._address = addresses[0]
        self._worker = self._start_worker("worker", "bench")
        self.driver = self._start_driver("client", addresses[-1], "bench")

    def replace_worker(self) -> None:
        self.launcher.kill(self._worker)
        self._worker = self._start_worker("worker", "bench")

    @contextmanager
    def flood(self) -> Iterator[None]:
        worker = self._start_worker("flood-worker", "flood")
        driver = self._start_driver("flood-client", self._address, "flood")
        driver.send("throughput", in_flight=FLOOD_IN_FLIGHT, seconds=FLOOD_SECONDS)
        try:
            yield
        finally:
            self.launcher.kill(driver.launched)
            self.launcher.kill(worker)

    def _server(self, number: int) -> str:
        ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
        server = self.launcher.start(
            f"server-{number + 1}" if number else "server",
            [self.python, "-m", "kagzi", "server", *ports],
            environment={"KAGZI_DB": self._store_url()},
        )
        return server.await_output(r"kagzi server ready .*?grpc=(\S+)")

    def _start_worker(self, role: str, namespace: str) -> Launched:
        options = ("--address", self._address, "--namespace", namespace, "--max-concurrent", str(SLOTS))
        command = [self.python, "-m", "kagzi", "worker", flows.__name__, *options]
        return self.launcher.start(role, command, ready=r"(worker \S+ serves)")

    def _start_driver(self, role: str, address: str, namespace: str) -> Driver:
        return self.launcher.driver(role, [self.python, DRIVER, address, namespace])

    def _store_url(self) -> str:
        return self.database_url


class KagziPostgres(_Kagzi):
    name = "kagzi-postgresql"
    title = "Kagzi, PostgreSQL"
    store = "postgresql"
    mode = "server, worker and client: a process each; uvloop"


class KagziSqlite(_Kagzi):
    name = "kagzi-sqlite"
    title = "Kagzi, SQLite"
    store = "sqlite"
    mode = "server, worker and client: a process each; uvloop; WAL, synchronous=FULL"

    def _store_url(self) -> str:
        return f"sqlite:///{self.directory}/kagzi.db"


class KagziTwoServers(KagziPostgres):
    name = "kagzi-postgresql-2-servers"
    title = "Kagzi, PostgreSQL, 2 servers"
    mode = "as before; the worker at one server, the client at another"
    servers = 2


class KagziFourServers(KagziPostgres):
    name = "kagzi-postgresql-4-servers"
    title = "Kagzi, PostgreSQL, 4 servers"
    mode = "as before; the worker at one server, the client at another"
    servers = 4


class KagziEmbedded(Engine):
    name = "kagzi-embedded"
    title = "Kagzi, SQLite, in process"
    store = "sqlite"
    mode = "server, worker and client in one process, without a socket; uvloop; WAL, synchronous=FULL"
    python: ClassVar[str] = sys.executable
    cannot: ClassVar[dict[str, str]] = {
        "W7": "its worker cannot be killed apart from its server and its client",
        "W10": "an embedded server serves the namespaces of one program",
    }

    @classmethod
    def versions(cls) -> dict[str, str]:
        return KagziSqlite.versions()

    def start(self) -> None:
        address = f"sqlite:///{self.directory}/kagzi.db"
        self.driver = self.launcher.driver("process", [self.python, DRIVER, address, "bench", str(SLOTS)])

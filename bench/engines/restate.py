"""Restate: the server from npm, the service with its Python SDK on Hypercorn and uvloop."""

import json
import socket
import time
import urllib.error
import urllib.request
from typing import ClassVar

from bench.engines.base import PROGRAMS, Engine
from bench.install import node_modules, pinned, python_of, restate_server
from bench.launch import READY_TIMEOUT_S, EngineError, Launched


class Restate(Engine):
    name = "restate"
    title = "Restate"
    store = "own"
    mode = "server, service (Hypercorn, uvloop) and client (HTTP/1.1): a process each; its own log, fsync on"
    cannot: ClassVar[dict[str, str]] = {"W10": "it has no namespaces"}

    @classmethod
    def versions(cls) -> dict[str, str]:
        package = json.loads((node_modules() / "@restatedev" / "restate-server" / "package.json").read_text())
        return {"restate-server": package["version"], **pinned("restate", "restate-sdk", "Hypercorn", "uvloop")}

    def start(self) -> None:
        node_port, ingress, admin, self._service_port = free_ports(4)
        server = self.launcher.start(
            "server",
            [restate_server(), "--base-dir", self.directory / "restate", "--node-name", "bench"],
            environment={
                "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node_port}",
                "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node_port}/",
                "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
                "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
                "RESTATE_LOG_FILTER": "warn",
                "RESTATE_DISABLE_TELEMETRY": "true",
                "DO_NOT_TRACK": "1",
            },
        )
        self._service = self._start_service()
        self._await(f"http://127.0.0.1:{admin}/health", server)
        self._await(f"http://127.0.0.1:{ingress}/restate/health", server)
        self._register(f"http://127.0.0.1:{admin}/deployments", server)
        self.driver = self.launcher.driver(
            "client", [python_of("restate"), PROGRAMS / "restate_driver.py", str(ingress)]
        )

    def replace_worker(self) -> None:
        self.launcher.kill(self._service)
        self._service = self._start_service()

    def _start_service(self) -> Launched:
        command = [python_of("restate"), PROGRAMS / "restate_service.py", str(self._service_port)]
        return self.launcher.start("worker", command, ready="(ready: service)")

    def _await(self, url: str, server: Launched) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise EngineError(f"{url} did not answer:\n{server.tail()}")

    def _register(self, url: str, server: Launched) -> None:
        body = json.dumps({"uri": f"http://127.0.0.1:{self._service_port}"}).encode()
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=20):
                    return
            except urllib.error.HTTPError as error:
                if time.monotonic() > deadline:
                    raise EngineError(f"the service was refused: {error.read()!r}\n{server.tail()}") from error
                time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    """Ports that are free at the moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports

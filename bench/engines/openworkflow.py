"""OpenWorkflow (npm): worker and client in one Node process, as in its documentation."""

import json
import subprocess
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from bench.engines.base import PROGRAMS, Engine
from bench.install import node, node_modules, place

_TOO_LONG = "a run has at most 1,000 steps"


class _OpenWorkflow(Engine):
    cannot: ClassVar[dict[str, str]] = {
        "W7": _TOO_LONG,
        "long": _TOO_LONG,
        "wide": _TOO_LONG,
        "W10": "namespaces have workers of their own, and no share",
    }

    @classmethod
    def versions(cls) -> dict[str, str]:
        package = json.loads((node_modules() / "openworkflow" / "package.json").read_text())
        version = subprocess.run([node(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
        return {"openworkflow": package["version"], "node": version}

    def start(self) -> None:
        store, where, environment = self._store()
        self.driver = self.launcher.driver(
            "process",
            [node(), "--no-warnings", PROGRAMS / "openworkflow_driver.mjs", place() / "node", store, where],
            environment=environment,
        )

    def stop_worker(self) -> None:
        self.driver.call("stop_worker")

    def _store(self) -> tuple[str, str, dict[str, str]]:
        raise NotImplementedError


class OpenWorkflowPostgres(_OpenWorkflow):
    name = "openworkflow-postgresql"
    title = "OpenWorkflow, PostgreSQL"
    store = "postgresql"
    mode = "worker and client in one process, as many slots as runs; its own pool of 10 connections"

    def _store(self) -> tuple[str, str, dict[str, str]]:
        """Its driver takes a Unix socket from the environment, not from a URL."""
        url = urlsplit(self.database_url)
        query = parse_qs(url.query)
        environment = {"PGUSER": url.username or "postgres", "PGPORT": query.get("port", ["5432"])[0]}
        if "host" not in query:
            return "postgresql", self.database_url, {}
        return "postgresql", f"postgresql:///{url.path[1:]}", {**environment, "PGHOST": query["host"][0]}


class OpenWorkflowSqlite(_OpenWorkflow):
    name = "openworkflow-sqlite"
    title = "OpenWorkflow, SQLite, in process"
    store = "sqlite"
    mode = "worker and client in one process, as many slots as runs; WAL, synchronous=FULL (its defaults)"

    def _store(self) -> tuple[str, str, dict[str, str]]:
        return "sqlite", str(self.directory / "openworkflow.db"), {}

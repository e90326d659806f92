"""DBOS: a library, whose worker runs in the caller's process."""

from typing import ClassVar

from bench.engines.base import PROGRAMS, Engine
from bench.install import pinned, python_of


class _Dbos(Engine):
    cannot: ClassVar[dict[str, str]] = {"W10": "it has no namespaces"}

    @classmethod
    def versions(cls) -> dict[str, str]:
        return pinned("dbos", "dbos", "SQLAlchemy", "psycopg", "uvloop")

    def start(self) -> None:
        command = [python_of("dbos"), PROGRAMS / "dbos_driver.py", self._url()]
        self.driver = self.launcher.driver("process", command)

    def replace_worker(self) -> None:
        self.launcher.kill(self.driver.launched)
        self.start()

    def _url(self) -> str:
        return self.database_url


class DbosPostgres(_Dbos):
    name = "dbos-postgresql"
    title = "DBOS, PostgreSQL, in process"
    store = "postgresql"
    mode = "worker and client in one process; async workflows, uvloop; its own pool of 20 connections"


class DbosSqlite(_Dbos):
    name = "dbos-sqlite"
    title = "DBOS, SQLite, in process"
    store = "sqlite"
    mode = "worker and client in one process; async workflows, uvloop; SQLite as it opens it"

    def _url(self) -> str:
        return f"sqlite:///{self.directory}/dbos.db"

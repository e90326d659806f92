"""Absurd: functions in PostgreSQL and a library; its workers run in the caller's process."""

from typing import ClassVar

from bench.engines.base import PROGRAMS, Engine
from bench.install import pinned, python_of


class Absurd(Engine):
    name = "absurd"
    title = "Absurd, PostgreSQL"
    store = "postgresql"
    mode = "10 workers of 10 slots and the client in one process, 20 connections; uvloop; polls every 100 ms each"
    cannot: ClassVar[dict[str, str]] = {"W10": "it has no namespaces"}

    @classmethod
    def versions(cls) -> dict[str, str]:
        return pinned("absurd", "absurd-sdk", "absurdctl", "psycopg", "uvloop")

    def start(self) -> None:
        command = [python_of("absurd"), PROGRAMS / "absurd_driver.py", self.database_url]
        self.driver = self.launcher.driver("process", command)

    def replace_worker(self) -> None:
        self.launcher.kill(self.driver.launched)
        self.start()

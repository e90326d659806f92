"""What the harness needs of an engine."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from bench.launch import Driver, EngineError, Launcher

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
SLOTS = 500
"""Of every worker, so that it is not the limit."""


class Engine(ABC):
    """One set-up of an engine: its processes, started afresh for each round on an empty store."""

    name: ClassVar[str]
    title: ClassVar[str]
    store: ClassVar[str]  # "postgresql", "sqlite", "own"
    mode: ClassVar[str]  # which processes it has, and how they are configured
    cannot: ClassVar[Mapping[str, str]] = {}
    """Workloads that it cannot express or finish, and why."""

    def __init__(self, launcher: Launcher, database_url: str) -> None:
        self.launcher = launcher
        self.database_url = database_url
        self.driver: Driver

    @property
    def directory(self) -> Path:
        return self.launcher.directory

    @classmethod
    @abstractmethod
    def versions(cls) -> dict[str, str]:
        """Of the engine, its SDK and its runtime, by name. Raises EngineError if it is not installed."""

    @abstractmethod
    def start(self) -> None:
        """Start everything. Afterwards `driver` can be used."""

    def replace_worker(self) -> None:
        """Kill the worker (`kill -9`) and start another one; `driver` may be another one, too."""
        raise EngineError(f"{self.title}: its worker cannot be replaced")

    def stop_worker(self) -> None:
        """Stop it, if it might take runs of a type that it does not serve."""
        return

    @contextmanager
    def flood(self) -> Iterator[None]:
        """Another namespace has as much work as it can do."""
        raise EngineError(f"{self.title}: has no namespaces")
        yield

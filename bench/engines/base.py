"""The interface of an engine to the harness."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from bench.launch import Driver, EngineError, Launcher

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
SLOTS = 500
"""Slots of every worker: enough that they are not the limit."""


class Engine(ABC):
    """One set-up of an engine: its processes, started anew for each round on an empty store."""

    name: ClassVar[str]
    title: ClassVar[str]
    store: ClassVar[str]  # "postgresql", "sqlite", "own"
    mode: ClassVar[str]  # its processes and their configuration
    cannot: ClassVar[Mapping[str, str]] = {}
    """Workloads that it cannot express or finish, with the reason."""

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
        """Versions of the engine, its SDK and its runtime, by name. Raises EngineError if it is not installed."""

    @abstractmethod
    def start(self) -> None:
        """Start all processes. Afterwards `driver` can be used."""

    def replace_worker(self) -> None:
        """Kill the worker (`kill -9`) and start another one; `driver` may change, too."""
        raise EngineError(f"{self.title}: its worker cannot be replaced")

    def stop_worker(self) -> None:
        """Stop the worker, if it might take runs of a type that it does not serve."""
        return

    @contextmanager
    def flood(self) -> Iterator[None]:
        """Give another namespace as much work as it can do."""
        raise EngineError(f"{self.title}: has no namespaces")
        yield

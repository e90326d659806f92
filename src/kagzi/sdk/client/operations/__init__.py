"""What a client manages besides runs: schedules, workers, versions and others. Each module is imported on first use."""

from importlib import import_module
from typing import Any, Protocol

from ..backend import Backend


class Operations:
    """The operations of a client on one kind of object in its namespace."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        self._backend = backend
        self._namespace = namespace


class _Client(Protocol):
    _backend: Backend
    _namespace: str


class _Operation:
    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get__(self, client: _Client | None, owner: type) -> Any:
        if client is None:
            return self
        make = getattr(import_module(f".{self._module}", __name__), self._name)
        return make(client._backend, client._namespace)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  its own


def operation(module: str, name: str) -> Any:
    """An attribute of a client: the class `name` of a `module` here, created for its connection and namespace."""
    return _Operation(module, name)

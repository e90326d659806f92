"""The namespace of a run, which a handle by id can still change."""

from collections.abc import Callable
from typing import Generic, TypeVar

H_co = TypeVar("H_co", covariant=True)


class RunNamespace(str, Generic[H_co]):
    """A text, `run.namespace == "production"`, that is also called: `client.get(id).namespace("production")`."""

    __slots__ = ("_move",)

    _move: Callable[[str], H_co]

    @classmethod
    def of(cls, namespace: str, move: Callable[[str], H_co]) -> "RunNamespace[H_co]":
        made = cls(namespace)
        made._move = move
        return made

    def __call__(self, namespace: str) -> H_co:
        """The same handle, looked for in another namespace."""
        return self._move(namespace)

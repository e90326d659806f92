"""The namespace of a run, which can still be changed on a handle by id."""

from collections.abc import Callable
from typing import Generic, Self, TypeVar

H_co = TypeVar("H_co", covariant=True)


class RunNamespace(str, Generic[H_co]):
    """A string, `run.namespace == "production"`, that can be called: `client.get(id).namespace("production")`."""

    __slots__ = ("_move",)

    _move: Callable[[str], H_co]

    def __new__(cls, namespace: str, move: Callable[[str], H_co]) -> Self:
        made = super().__new__(cls, namespace)
        made._move = move
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickled as a plain string."""
        return (str, (str.__str__(self),))

    def __call__(self, namespace: str) -> H_co:
        """The same handle in another namespace."""
        return self._move(namespace)

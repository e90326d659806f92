"""client.cancel(id): a request that is refined and awaited."""

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Self

from .builder import Builder

BeginCancel = Callable[[str, str, str | None], Coroutine[Any, Any, None]]
"""(id, reason, namespace): sends the request."""


class Cancel(Builder, Coroutine[Any, Any, None]):
    """`await client.cancel(id)`, or refine it first: `await client.cancel(id).namespace("production")`. Every method
    returns a new one. It is a coroutine: `asyncio.create_task` takes it."""

    _consequence = "nothing was cancelled"

    def __init__(self, begin: BeginCancel, id: str, reason: str, namespace: str | None) -> None:
        self._begin = begin
        self._id = id
        self._reason = reason
        self._namespace = namespace
        self._coroutine: Coroutine[Any, Any, None] | None = None
        self._is_settled = False

    def __repr__(self) -> str:
        return f"<Cancel of {self._id!r}>"

    def _call(self) -> str:
        return f"client.cancel({self._id!r})"

    def namespace(self, namespace: str) -> Self:
        """Cancel the run of this namespace instead of the client's own."""
        return self._with(self._reason, namespace)

    def reason(self, reason: str) -> Self:
        """The reason, stored with the run and passed to its code."""
        return self._with(reason, self._namespace)

    def _with(self, reason: str, namespace: str | None) -> Self:
        self._is_settled = True
        return type(self)(self._begin, self._id, reason, namespace)

    def _started(self) -> Coroutine[Any, Any, None]:
        self._is_settled = True
        if self._coroutine is None:
            self._coroutine = self._begin(self._id, self._reason, self._namespace)
        return self._coroutine

    def __await__(self) -> Generator[Any, Any, None]:
        return self._started().__await__()

    def send(self, value: Any) -> Any:
        return self._started().send(value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        del tb
        error = typ if isinstance(typ, BaseException) else val if isinstance(val, BaseException) else typ()
        return self._started().throw(error)

    def close(self) -> None:
        self._is_settled = True
        if self._coroutine is not None:
            self._coroutine.close()

"""The result of `Kagzi.connect(...)`, which becomes a client when it is awaited or entered."""

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument


def call_timeout_s(call_timeout: Duration) -> float:
    """Raises InvalidArgument."""
    seconds = parse_duration(call_timeout, what="call_timeout").total_seconds()
    if seconds <= 0:
        raise InvalidArgument('call_timeout must be longer than 0. Write "30s".', field="call_timeout")
    return seconds


class _Closing(Protocol):
    async def close(self) -> None: ...


Client = TypeVar("Client", bound=_Closing)


class Connecting(Generic[Client]):
    """A pending connection: `await` it for a client that you close yourself, or use it with `async with`."""

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, Client]]) -> None:
        self._connect = connect
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    if not TYPE_CHECKING:  # hidden: type checkers know that this is not a client

        def __getattr__(self, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else " Write: client = await Kagzi.connect(...), or async with it."
            raise AttributeError(f"Kagzi.connect(...) has no {name!r} before it is awaited.{hint}", name=name, obj=self)

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

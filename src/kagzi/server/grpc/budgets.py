"""How many calls, long polls and streams each namespace may have open at once. Each kind has its own budget, so that
streams and long polls do not starve calls, and each namespace has a share of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from google.protobuf.message import Message

from ...core import limits
from ...core.budgets import NamespaceBudget
from ...core.errors import KagziError, ResourceExhausted, limit_reached
from ...wire.common import read_namespace


class Budget(NamespaceBudget):
    def use(self, namespace: str) -> "_Use":
        """Takes one for the duration of a block. Entering the block raises ResourceExhausted."""
        return _Use(self, namespace)


class _Use:
    """A plain class for speed: every call creates one."""

    __slots__ = ("_budget", "_namespace")

    def __init__(self, budget: Budget, namespace: str) -> None:
        self._budget = budget
        self._namespace = namespace

    def __enter__(self) -> None:
        self._budget.take(self._namespace)

    def __exit__(self, *_: object) -> None:
        self._budget.give_back(self._namespace)


class Budgets:
    def __init__(self) -> None:
        self.calls = Budget("calls", limits.CALLS, limits.CALLS_SHARE)
        self.polls = Budget("long polls", limits.LONG_POLLS, limits.LONG_POLLS_SHARE)
        self.streams = Budget("streams", limits.STREAMS, limits.STREAMS_SHARE)


def namespace_of(request: Message) -> str:
    """The namespace whose budget a request uses. Requests without a namespace, such as those of operators, share one
    budget."""
    message = cast("Any", request)
    if "namespace_id" in request.DESCRIPTOR.fields_by_name:
        return read_namespace(message.namespace_id)
    if "hello" in request.DESCRIPTOR.fields_by_name:  # the first message of a session
        return read_namespace(message.hello.register.namespace_id)
    return ""


class Stream(Protocol):
    async def read(self) -> object: ...


class FirstMessages:
    """Streams that have not sent their first message, which names their namespace. When there are too many, the oldest
    is refused, so that silent streams cannot keep out others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._silent: dict[asyncio.Timeout, None] = {}  # oldest first
        self._refusal = self._too_many

    async def read(self, stream: Stream) -> object:
        """The first message. Raises ResourceExhausted if it does not arrive while too many other streams wait."""
        if len(self._silent) >= self._limit:
            oldest = next(iter(self._silent))
            self._refuse(oldest)
        try:
            async with asyncio.timeout(None) as turn:
                self._silent[turn] = None
                try:
                    return await stream.read()
                finally:
                    self._silent.pop(turn, None)
        except TimeoutError:
            raise self._refusal() from None

    def _too_many(self) -> KagziError:
        return ResourceExhausted(
            f"this server waits for the first message of {self._limit} streams at once, "
            "and this one has been silent longest. Send it when the stream is opened.",
            metadata=limit_reached("silent_streams", self._limit),
        )

    def close(self, refusal: Callable[[], KagziError]) -> None:
        """Refuses every stream that still waits, each with an error of its own."""
        self._refusal = refusal
        for turn in list(self._silent):
            self._refuse(turn)

    def _refuse(self, turn: asyncio.Timeout) -> None:
        del self._silent[turn]
        turn.reschedule(asyncio.get_running_loop().time())


class Opened:
    """A stream whose first message was already read: the first `read` returns it."""

    def __init__(self, context: Any, first: object) -> None:
        self._context = context
        self._first: object | None = first
        self.read: Callable[[], Awaitable[object]] = self._read_first

    async def _read_first(self) -> object:
        self.read = self._context.read  # later reads go to the stream directly
        first, self._first = self._first, None
        return await self._context.read() if first is None else first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

"""Starts that users wrote in their own database, in their own transactions: the contract of whoever drains them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias


class OutboxRow(NamedTuple):
    """`request`: a message that the server reads, unless its `request_bytes` are more than a message may have.
    `age_us`: since it was written, by the clock of that database."""

    namespace: str
    workflow_type: str
    workflow_id: str
    request: bytes
    request_bytes: int
    age_us: int
    attempts: int  # to start it, before this one


class Taken(NamedTuple):
    """There is a run for it: the row goes."""


class Refused(NamedTuple):
    """The row stays, with the reason, and is not tried again by itself."""

    error: str


class Postponed(NamedTuple):
    """It is tried again after a while."""

    error: str
    delay_s: float


Fate: TypeAlias = Taken | Refused | Postponed
Start: TypeAlias = Callable[[Sequence[OutboxRow]], Awaitable[Sequence[Fate]]]


class OutboxCounts(NamedTuple):
    """Counted no further than 10,000 each."""

    waiting: int
    refused: int


class Outbox(Protocol):
    """A table in a database of the user."""

    @property
    def place(self) -> str:
        """Where it is, as it may be shown."""
        ...

    @property
    def listens(self) -> bool:
        """Whether it hears of new rows at once."""
        ...

    async def listen(self, on_change: Callable[[], None]) -> None:
        """Has `on_change` called when rows were written. Returns when the connection is gone, or if this database has
        no way to tell. Raises Unavailable."""
        ...

    async def drain(self, limit: int, start: Start) -> int:
        """Gives up to so many rows that are due to `start`, the oldest first, and does to each what that says, all in
        one transaction; rows that another server has taken are left to it. Returns how many there were, or -1 if the
        table does not exist. Raises Unavailable, StatementFailed, and what `start` raises; the rows stay then."""
        ...

    async def counts(self) -> OutboxCounts: ...

    async def close(self) -> None: ...

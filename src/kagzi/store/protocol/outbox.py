"""The outbox: starts that users write to a table in their own database and transactions, and that a server drains."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias


class OutboxRow(NamedTuple):
    """`request`: the encoded message for the server, unless its `request_bytes` exceed the size limit of a message.
    `age_us`: the time since it was written, by the clock of that database."""

    namespace: str
    workflow_type: str
    workflow_id: str
    request: bytes
    request_bytes: int
    age_us: int
    attempts: int  # earlier attempts to start it


class Taken(NamedTuple):
    """The run exists: the row is deleted."""


class Refused(NamedTuple):
    """The row stays, with the reason, and is not retried automatically."""

    error: str


class Postponed(NamedTuple):
    """The row is retried later."""

    error: str
    delay_s: float


Fate: TypeAlias = Taken | Refused | Postponed
Start: TypeAlias = Callable[[Sequence[OutboxRow]], Awaitable[Sequence[Fate]]]


class OutboxCounts(NamedTuple):
    """Each count stops at 10,000."""

    waiting: int
    refused: int


class Outbox(Protocol):
    """A table in a database of the user."""

    @property
    def place(self) -> str:
        """Where the table is, without secrets."""
        ...

    @property
    def listens(self) -> bool:
        """Whether it is notified of new rows at once."""
        ...

    async def listen(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` when rows were written. Returns when the connection is lost, or if this database has no
        notifications. Raises Unavailable."""
        ...

    async def drain(self, limit: int, start: Start) -> int:
        """Pass up to `limit` due rows to `start`, oldest first, and apply its result to each row, all in one
        transaction. Rows that another server has locked are skipped. Returns the number of rows, or -1 if the table
        does not exist. Raises Unavailable, StatementFailed, and what `start` raises; the rows then stay."""
        ...

    async def counts(self) -> OutboxCounts: ...

    async def close(self) -> None: ...

"""Where time, identity and chance come in. Everything that needs one of them is handed it; `kagzi.system` has the real
ones."""

from typing import Protocol

from .times import Timestamp


class Clock(Protocol):
    def now(self) -> Timestamp:
        """The time that decides: on a server, the database's."""
        ...

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp, /) -> None:
        """The store's clock said `store_now` between these two readings of this one."""
        ...


class Ids(Protocol):
    def run_id(self, now: Timestamp, namespace: str) -> str:
        """A new UUIDv7 for something created at `now`, with the mark of its namespace."""
        ...

    def token(self) -> str:
        """A new random UUID: request ids, worker ids, server ids."""
        ...

    def nonce(self) -> int:
        """63 random bits, never 0."""
        ...

    def secret(self) -> str:
        """256 random bits as 64 hexadecimal digits."""
        ...


class Rng(Protocol):
    def fraction(self) -> float:
        """Uniform in [0, 1)."""
        ...

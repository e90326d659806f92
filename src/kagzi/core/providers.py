"""Interfaces for time, ids and randomness. Code that needs one of them gets it as an argument; `kagzi.system` has the
real implementations."""

from typing import Protocol

from .times import Timestamp


class Clock(Protocol):
    def now(self) -> Timestamp:
        """The authoritative time: on a server, the database's."""
        ...

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp, /) -> None:
        """The store's clock showed `store_now` between these two readings of this clock."""
        ...


class Ids(Protocol):
    def run_id(self, now: Timestamp, namespace: str) -> str:
        """A new UUIDv7 for something created at `now`, with the hash of its namespace."""
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

"""What happened to a run, in order."""

from collections.abc import Sequence
from typing import Protocol

from ...core.events import RunEventPage, RunMark
from ...core.records import RunKey


class EventVerbs(Protocol):
    """Read by seq; nothing is stored for it."""

    async def events_of(self, run: RunKey, after_seq: int, limit: int) -> RunEventPage | None:
        """What happened in its steps beyond `after_seq`, at most `limit` events and one page of history in bytes (but
        one event), and how the run stood at that very moment. None: no such run."""
        ...

    async def markers_of(self, runs: Sequence[RunKey]) -> Sequence[RunMark | None]:
        """For each: how far it is, None if there is no such run."""
        ...

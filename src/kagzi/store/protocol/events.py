"""The events of a run, in order."""

from collections.abc import Sequence
from typing import Protocol

from ...core.events import RunEventPage, RunMark
from ...core.records import RunKey


class EventVerbs(Protocol):
    """Events are derived from the history by seq; they are not stored."""

    async def events_of(self, run: RunKey, after_seq: int, limit: int) -> RunEventPage | None:
        """Events of its steps after `after_seq`, at most `limit` and at most one page of history in bytes (but at least
        one event), with the state of the run at the same moment. None: no such run."""
        ...

    async def markers_of(self, runs: Sequence[RunKey]) -> Sequence[RunMark | None]:
        """For each run its position in its history; None: no such run."""
        ...

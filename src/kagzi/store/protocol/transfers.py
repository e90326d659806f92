"""Runs on their way out of a store, and into another one."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from ...core.effects import Effects
from ...core.records import RunKey
from ...core.run.outcomes import Refused
from ...core.states import RunStatus
from ...core.times import Timestamp
from ...core.transfers.images import AttemptImage, LinkImage, Part, RunImage, SignalImage, StepImage

Entrance: TypeAlias = Literal["open", "exists", "busy"]
"""Whether a run can come in: it can, it is there already (in any namespace), or somebody else is bringing it."""


class TransferVerbs(Protocol):
    """A run comes in bit by bit: its history first, which nobody can see, then the run itself, which makes it whole at
    once. It goes out in pages, which end at a number of bytes, too: the last one is empty."""

    async def export_run(self, run: RunKey) -> RunImage | None:
        """None: no such run."""
        ...

    async def export_steps(self, run: RunKey, after_begun_seq: int, limit: int) -> Sequence[StepImage]:
        """In the order in which they were begun."""
        ...

    async def export_attempts(self, run: RunKey, after: tuple[str, int], limit: int) -> Sequence[AttemptImage]:
        """By (step_id, seq)."""
        ...

    async def export_signals(self, run: RunKey, after_number: int, limit: int) -> Sequence[SignalImage]:
        """In the order in which they came."""
        ...

    async def export_links(self, run: RunKey, after_step_id: str, limit: int) -> Sequence[LinkImage]:
        """By step_id."""
        ...

    async def begin_import(self, run_id: str, token: str, now: Timestamp, stale_before: Timestamp) -> Entrance:
        """Delete what an import left behind that was given up, or has not moved since `stale_before`."""
        ...

    async def known_runs(self, namespace: str, run_ids: Sequence[str]) -> Sequence[str]:
        """Which of these are runs of the namespace."""
        ...

    async def import_parts(self, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
        """Put a piece of its history there; returns how many of them were new. None: this import was given up."""
        ...

    async def finish_import(
        self, run: RunKey, token: str, image: RunImage, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        """The run is there, in this status. `image` is what `as_imported` made of it. Refused if its workflow_id is
        active or its request_id is taken. A run it was to wait behind that is not there, or has ended, is not waited
        for. None as above."""
        ...

    async def abandon_imports(self, *, token: str = "", stale_before: Timestamp = 0) -> None:
        """Give up this import, and those that have not moved since: what they left is cleared away with time."""
        ...

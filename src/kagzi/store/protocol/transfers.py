"""Export of runs from a store, and import into another."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from ...core.effects import Effects
from ...core.records import RunKey
from ...core.run.outcomes import Refused
from ...core.states import RunStatus
from ...core.times import Timestamp
from ...core.transfers.images import AttemptImage, ForgottenImage, LinkImage, Part, RunImage, SignalImage, StepImage

Entrance: TypeAlias = Literal["open", "exists", "busy"]
"""Whether a run can be imported: yes; it exists already (in any namespace); or another import of it is in progress."""


class TransferVerbs(Protocol):
    """A run is imported in parts: first its history, which is not visible, then the run itself, which makes all of it
    visible at once. It is exported in pages, which are limited by bytes, too; the last page is empty."""

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
        """In the order in which they were received."""
        ...

    async def export_links(self, run: RunKey, after_step_id: str, limit: int) -> Sequence[LinkImage]:
        """By step_id."""
        ...

    async def export_forgotten_steps(self, run: RunKey, after: tuple[int, str], limit: int) -> Sequence[ForgottenImage]:
        """By (retry_seq, step_id)."""
        ...

    async def begin_import(self, run_id: str, token: str, now: Timestamp, stale_before: Timestamp) -> Entrance:
        """Deletes what is left of an import that was abandoned, or made no progress since `stale_before`."""
        ...

    async def known_runs(self, namespace: str, run_ids: Sequence[str]) -> Sequence[str]:
        """Those of these ids that are runs of the namespace."""
        ...

    async def import_parts(self, run: RunKey, token: str, parts: Sequence[Part], now: Timestamp) -> int | None:
        """Insert parts of its history; returns how many of them were new. None: this import was abandoned."""
        ...

    async def finish_import(
        self, run: RunKey, token: str, image: RunImage, now: Timestamp
    ) -> tuple[RunStatus | Refused | None, Effects]:
        """Insert the run; returns its status. `image` comes from `as_imported`. Refused if its workflow_id is active or
        its request_id is taken. If the run that it should wait for does not exist or has ended, it does not wait. None:
        this import was abandoned."""
        ...

    async def abandon_imports(self, *, token: str = "", stale_before: Timestamp = 0) -> None:
        """Abandon this import, or those without progress since `stale_before`. Their rows are deleted later."""
        ...

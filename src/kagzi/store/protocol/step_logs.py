"""Log lines of steps."""

from collections.abc import Sequence
from typing import Protocol

from ...core.pages.cursor import Cursor
from ...core.records import Rows, RunKey
from ...core.run.step_logs import StepLog, StepLogLines


class StepLogVerbs(Protocol):
    """The last lines of each step: outside of the history, and deleted with their run."""

    async def add_step_logs(self, added: Sequence[StepLogLines]) -> None:
        """Append to what is there; the last lines are kept: see core.run.step_logs. Each step is named once. Lines of
        runs that are not there are ignored. Not durable when it returns."""
        ...

    async def list_step_logs(
        self, run: RunKey, *, step_id: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[StepLog] | None:
        """Of those steps that logged anything, by step id, forwards only; or of one. A cursor's id is the last step.
        None: the run is not there."""
        ...

"""Log lines of steps."""

from collections.abc import Sequence
from typing import Protocol

from ...core.pages.cursor import Cursor
from ...core.records import Rows, RunKey
from ...core.run.step_logs import StepLog, StepLogLines


class StepLogVerbs(Protocol):
    """The last lines of each step. They are not part of the history, and are deleted with their run."""

    async def add_step_logs(self, added: Sequence[StepLogLines]) -> None:
        """Append lines, and keep the last ones of each step: see core.run.step_logs. Each step is named once. Lines of
        unknown runs are ignored. Not durable when it returns."""
        ...

    async def list_step_logs(
        self, run: RunKey, *, step_id: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[StepLog] | None:
        """Logs of the steps that have any, by step id, forwards only; or of one step. A cursor's id is the last step.
        None: no such run."""
        ...

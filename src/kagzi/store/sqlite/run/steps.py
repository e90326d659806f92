"""Reads of steps."""

from ....core.limits import PAGE_ATTEMPTS
from ....core.pages.shown_steps import shown_step
from ....core.records import Rows, RunKey, StepRecord
from ....core.times import Timestamp
from ...pages import shown_attempts
from ...rows import read_attempt, read_step, write_json
from ..connection.connection import Database, Record


def list_steps(
    database: Database, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
) -> Rows[StepRecord] | None:
    """See Store.list_steps."""
    if (run_row := database.row("run_finished_at", (run.run_id, run.namespace))) is None:
        return None
    parameters = {"run_id": run.run_id, "name": name, "after": after_begun_seq, "limit": limit + 1}
    page, more = database.page("list_steps_with_payloads" if payloads else "list_steps", parameters, limit)
    steps, truncated = _with_attempts(database, run, page, run_row[0], payloads=payloads)
    return Rows(steps, more or truncated)


def get_step(database: Database, run: RunKey, step_id: str) -> StepRecord | None:
    """See Store.get_step."""
    if (run_row := database.row("run_finished_at", (run.run_id, run.namespace))) is None:
        return None
    row = database.record("get_step", (run.run_id, step_id))
    return None if row is None else _with_attempts(database, run, [row], run_row[0], payloads=True)[0][0]


def _with_attempts(
    database: Database, run: RunKey, rows: list[Record], run_finished_at: Timestamp | None, *, payloads: bool
) -> tuple[tuple[StepRecord, ...], bool]:
    """The steps with their earlier attempts, as many as fit; whether some are left out. See pages.shown_attempts."""
    step_ids = [row["step_id"] for row in rows]
    parameters = {"run_id": run.run_id, "step_ids": write_json(step_ids), "payloads": payloads}
    attempts, truncated = database.page("attempts_of", parameters | {"limit": PAGE_ATTEMPTS + 1}, PAGE_ATTEMPTS)
    shown = shown_attempts(step_ids, [row["step_id"] for row in attempts], truncated=truncated)
    steps = (
        shown_step(
            read_step(
                row, run, tuple(read_attempt(attempts[place]) for place in shown.by_step.get(row["step_id"], ()))
            ),
            run_finished_at,
        )
        for row in rows[: shown.steps]
    )
    return tuple(steps), shown.more

"""Steps as people see them."""

from collections import defaultdict

from ...core.records import Rows, RunKey, StepAttempt, StepRecord
from .connection import Database
from .rows import read_attempt, read_step, write_json


def list_steps(
    database: Database, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
) -> Rows[StepRecord] | None:
    """See Store.list_steps."""
    if database.row("run_exists", (run.run_id, run.namespace)) is None:
        return None
    given = {"run_id": run.run_id, "name": name, "after": after_begun_seq, "limit": limit + 1}
    rows = database.rows("list_steps_with_payloads" if payloads else "list_steps", given)
    page = rows[:limit]
    attempts = _attempts(database, run, [row[0] for row in page])
    steps = tuple(read_step(run, row, attempts.get(row[0], ())) for row in page)
    return Rows(steps, len(rows) > limit)


def get_step(database: Database, run: RunKey, step_id: str) -> StepRecord | None:
    """See Store.get_step."""
    if database.row("run_exists", (run.run_id, run.namespace)) is None:
        return None
    row = database.row("get_step", (run.run_id, step_id))
    return None if row is None else read_step(run, row, _attempts(database, run, [step_id]).get(step_id, ()))


def _attempts(database: Database, run: RunKey, step_ids: list[str]) -> dict[str, tuple[StepAttempt, ...]]:
    attempts: defaultdict[str, list[StepAttempt]] = defaultdict(list)
    for row in database.rows("attempts_of", (run.run_id, write_json(step_ids))):
        attempts[row[0]].append(read_attempt(row[1:]))
    return {step_id: tuple(earlier) for step_id, earlier in attempts.items()}

"""Questions about steps."""

from collections.abc import Sequence

from ...core.ids import is_uuid
from ...core.records import Rows, RunKey, StepAttempt, StepRecord
from .connections import Row, Session
from .rows import read_attempt, read_step


async def list_steps(
    session: Session, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
) -> Rows[StepRecord] | None:
    if not is_uuid(run.run_id):
        return None
    rows = await session.read("list_steps", run.namespace, run.run_id, name, after_begun_seq, limit + 1, payloads)
    if not rows:
        return None
    steps = [row for row in rows if row["step_id"] is not None]
    records = await _with_attempts(session, run, steps[:limit])
    return Rows(tuple(records), has_more=len(steps) > limit)


async def get_step(session: Session, run: RunKey, step_id: str) -> StepRecord | None:
    if not is_uuid(run.run_id):
        return None
    rows = await session.read("get_step", run.namespace, run.run_id, step_id)
    return (await _with_attempts(session, run, rows))[0] if rows else None


async def _with_attempts(session: Session, run: RunKey, rows: Sequence[Row]) -> list[StepRecord]:
    retried = [row["step_id"] for row in rows if row["attempt"] > 1 or row["reopened"]]
    attempts: dict[str, list[StepAttempt]] = {}
    if retried:
        for row in await session.read("step_attempts", run.run_id, retried):
            attempts.setdefault(row["step_id"], []).append(read_attempt(row))
    return [read_step(row, run.namespace, tuple(attempts.get(row["step_id"], ()))) for row in rows]

"""Reads of steps."""

from collections.abc import Sequence

from ....core.ids import is_uuid
from ....core.limits import PAGE_ATTEMPTS
from ....core.pages.shown_steps import shown_step
from ....core.records import Rows, RunKey, StepRecord
from ...pages import shown_attempts
from ...rows import read_attempt, read_step
from ..connection.connection import Row, Session


async def list_steps(
    session: Session, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
) -> Rows[StepRecord] | None:
    if not is_uuid(run.run_id):
        return None
    rows, more = await session.page(
        "list_steps",
        limit,
        namespace=run.namespace,
        run_id=run.run_id,
        name=name,
        after=after_begun_seq,
        payloads=payloads,
    )
    if not rows:
        return None
    steps = [row for row in rows if row["step_id"] is not None]
    records, truncated = await _with_attempts(session, run, steps, payloads=payloads)
    return Rows(tuple(records), has_more=more or truncated)


async def get_step(session: Session, run: RunKey, step_id: str) -> StepRecord | None:
    if not is_uuid(run.run_id):
        return None
    rows = await session.read("get_step", namespace=run.namespace, run_id=run.run_id, step_id=step_id)
    return (await _with_attempts(session, run, rows, payloads=True))[0][0] if rows else None


async def _with_attempts(
    session: Session, run: RunKey, rows: Sequence[Row], *, payloads: bool
) -> tuple[list[StepRecord], bool]:
    """The steps with their earlier attempts, as many as fit; whether some are left out. See pages.shown_attempts."""
    retried = [row["step_id"] for row in rows if row["attempt"] > 1 or row["reopened"]]
    rows_read: Sequence[Row] = ()
    truncated = False
    if retried:
        rows_read, truncated = await session.page(
            "step_attempts", PAGE_ATTEMPTS, run_id=run.run_id, step_ids=retried, payloads=payloads
        )
    shown = shown_attempts([row["step_id"] for row in rows], [row["step_id"] for row in rows_read], truncated=truncated)
    steps = [
        shown_step(
            read_step(
                row,
                run,
                tuple(read_attempt(rows_read[place]) for place in shown.by_step.get(row["step_id"], ())),
            ),
            row["run_finished_at"],
        )
        for row in rows[: shown.steps]
    ]
    return steps, shown.more

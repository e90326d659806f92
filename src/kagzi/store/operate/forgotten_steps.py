"""Reads steps that retries of their runs have discarded."""

from collections.abc import Sequence

from ...core.ids import is_uuid
from ...core.limits import PAGE_ATTEMPTS
from ...core.pages.shown_steps import shown_step
from ...core.records import Rows, RunKey, StepRecord
from ..pages import shown_attempts
from ..rows import Row, read_attempt, read_forgotten_step
from ..sessions import AFTER_ALL, Session


async def list_forgotten_steps(
    session: Session, run: RunKey, *, name: str | None, after: tuple[int, int] | None, limit: int, payloads: bool
) -> Rows[StepRecord] | None:
    """See Store.list_forgotten_steps."""
    if not is_uuid(run.run_id):
        return None
    if not await session.read("has_run", namespace=run.namespace, run_id=run.run_id):
        return None
    retry_seq, begun_seq = (AFTER_ALL, 0) if after is None else after
    rows, more = await session.page(
        "list_forgotten_steps",
        limit,
        run_id=run.run_id,
        name=name,
        retry_seq=retry_seq,
        after=begun_seq,
        payloads=payloads,
    )
    steps, truncated = await _with_attempts(session, run, rows, payloads=payloads)
    return Rows(tuple(steps), has_more=more or truncated)


async def get_forgotten_step(session: Session, run: RunKey, step_id: str, retry_seq: int) -> StepRecord | None:
    """See Store.get_forgotten_step."""
    if not is_uuid(run.run_id):
        return None
    rows = await session.read(
        "get_forgotten_step", namespace=run.namespace, run_id=run.run_id, step_id=step_id, retry_seq=retry_seq
    )
    return (await _with_attempts(session, run, rows, payloads=True))[0][0] if rows else None


async def _with_attempts(
    session: Session, run: RunKey, rows: Sequence[Row], *, payloads: bool
) -> tuple[list[StepRecord], bool]:
    """The steps with the attempts that came before their end, as many as fit; whether some are left out. Attempts are
    kept once, for all retries: see `shown_attempts`."""
    steps = [
        {"place": place, "step_id": row["step_id"], "below": row["seq"] or row["retry_seq"]}
        for place, row in enumerate(rows)
    ]
    attempts: Sequence[Row] = ()
    truncated = False
    if steps:
        attempts, truncated = await session.page(
            "forgotten_attempts", PAGE_ATTEMPTS, run_id=run.run_id, steps=steps, payloads=payloads
        )
    shown = shown_attempts(
        [str(place) for place in range(len(rows))], [str(row["place"]) for row in attempts], truncated=truncated
    )
    records = [
        shown_step(
            read_forgotten_step(
                row, run, tuple(read_attempt(attempts[each]) for each in shown.by_step.get(str(place), ()))
            ),
            None,
        )
        for place, row in enumerate(rows[: shown.steps])
    ]
    return records, shown.more

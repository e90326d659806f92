"""Reads steps for a timeline, without payloads."""

from collections.abc import Sequence

import msgspec

from ...core.ids import is_uuid
from ...core.pages.pauses import PAUSE_NOTES, PAUSED, RESUMED, Pause, PausedRun, PauseNote, pauses_of
from ...core.pages.timeline import (
    TIMELINE_ATTEMPTS,
    Timeline,
    TimelineQuery,
    TimelineRetry,
    TimelineStep,
    as_shown,
    first_line,
    stored_statuses,
)
from ...core.records import RunKey
from ...core.states import CODE_OF_STEP_KIND, STEP_KIND_OF_CODE, STEP_STATUS_OF_CODE
from ...core.times import Timestamp
from ..rows import Row
from ..sessions import AFTER_ALL, Session, first

_decode_attempts = msgspec.json.Decoder(list[tuple[Timestamp | None, Timestamp, str | None]]).decode


async def read_timeline(session: Session, run: RunKey, query: TimelineQuery) -> Timeline | None:
    """See Store.timeline."""
    if not is_uuid(run.run_id):
        return None
    head = await first(session, "timeline_run", run_id=run.run_id, namespace=run.namespace, step_id=query.around)
    if head is None:
        return None
    if query.around and head["begun_seq"] is None:
        return Timeline(run=run, steps=(), knows_around=False)
    where: dict[str, object] = {
        "run_id": run.run_id,
        "name": query.name or None,
        "statuses": stored_statuses(query.statuses, run_ended=head["finished_at"] is not None) or None,
        "kinds": [CODE_OF_STEP_KIND[kind] for kind in query.kinds] or None,
        "attempts": TIMELINE_ATTEMPTS,
    }

    async def older(before: int, limit: int) -> tuple[Sequence[Row], bool]:
        rows = await session.read("timeline_older", **where, before=before, limit=limit + 1)
        return rows[:limit], len(rows) > limit

    async def newer(after: int, limit: int) -> tuple[Sequence[Row], bool]:
        rows = await session.read("timeline_newer", **where, after=after, limit=limit + 1)
        return rows[:limit], len(rows) > limit

    rows: Sequence[Row]
    has_older = has_newer = False
    if query.around:
        above, has_newer = await newer(head["begun_seq"], (query.size - 1) // 2)
        below, has_older = await older(head["begun_seq"] + 1, query.size - len(above))
        rows = [*reversed(above), *below]
    elif query.after is not None:
        rows, has_newer = await newer(query.after, query.size)
        has_older = query.after > 0 and bool((await older(query.after + 1, 1))[0])
    else:
        rows, has_older = await older(AFTER_ALL if query.before is None else query.before, query.size)
        has_newer = query.before is not None and bool((await newer(query.before - 1, 1))[0])
    steps = tuple(as_shown(_read(row), head["finished_at"]) for row in rows)
    pauses = await _read_pauses(session, run, head)
    retries = await _read_retries(session, run)
    return Timeline(run=run, steps=steps, older=has_older, newer=has_newer, pauses=pauses, retries=retries)


async def _read_retries(session: Session, run: RunKey) -> tuple[TimelineRetry, ...]:
    rows = await session.read("timeline_retries", run_id=run.run_id)
    return tuple(
        TimelineRetry(retry_seq=row["retry_seq"], retried_at=row["retried_at"], steps=row["steps"]) for row in rows
    )


async def _read_pauses(session: Session, run: RunKey, head: Row) -> tuple[Pause, ...]:
    rows = await session.read("timeline_pauses", run_id=run.run_id, paused=PAUSED, resumed=RESUMED, limit=PAUSE_NOTES)
    state = PausedRun(
        status=head["status"],
        created_at=head["created_at"],
        finished_at=head["finished_at"],
        cancel_requested_at=head["cancel_requested_at"],
        pause_requested=bool(head["pause_requested"]),
        pause_reason=head["pause_reason"] or "",
        claimed=head["lease"] > 0,
    )
    return pauses_of(state, [PauseNote(row["step_id"], row["finished_at"], row["reason"]) for row in reversed(rows)])


def _read(row: Row) -> TimelineStep:
    return TimelineStep(
        step_id=row["step_id"],
        name=row["name"],
        kind=STEP_KIND_OF_CODE[row["kind"]],
        status=STEP_STATUS_OF_CODE[row["status"]],
        begun_seq=row["begun_seq"],
        created_at=row["created_at"],
        attempt=row["attempt"],
        seq=row["seq"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        retry_at=row["retry_at"],
        wake_at=row["wake_at"],
        attempts=tuple(reversed(_decode_attempts(row["attempts"] or b"[]"))),
        error=first_line(row["error_type"], row["error_message"]),
        child_run_id=row["child_run_id"],
        parent_step_id=row["parent_step_id"] or "",
        parallel_group_id=row["parallel_group_id"] or "",
        worker_id=row["worker_id"],
    )

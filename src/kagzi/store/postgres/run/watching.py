"""The events of a run, read from its history."""

from collections.abc import Sequence

from ....core.events import LOST_RETRY_AT, RunEvent, RunEventPage, RunMark, Source, event_kind
from ....core.ids import is_uuid
from ....core.limits import HISTORY_PAGE_BYTES
from ....core.pages.pauses import is_pause_note, pause_event
from ....core.records import RunKey
from ....core.run.wakes import WOKEN, planned_wake_at, woken_event
from ....core.states import RUN_STATUS_OF_CODE, STEP_KIND_OF_CODE, STEP_STATUS_OF_CODE, KindCode, StepCode, StepKind
from ...rows import read_error, read_payload
from ...sessions import Purpose
from ..connection.connection import Row, Session
from ..connection.connections import Connections


class PostgresEvents(Connections):
    async def events_of(self, run: RunKey, after_seq: int, limit: int) -> RunEventPage | None:
        if not is_uuid(run.run_id):
            return None
        return await self.run(Purpose.LOOKUP, lambda session: _read_events(session, run, after_seq, limit))

    async def markers_of(self, runs: Sequence[RunKey]) -> Sequence[RunMark | None]:
        ids = [run.run_id for run in runs if is_uuid(run.run_id)]
        async with self._readers.use(confirm=False) as session:
            markers = {mark.run: mark for mark in map(_mark, await session.read("markers_of", run_ids=ids))}
        return [markers.get(run) for run in runs]


async def _read_events(session: Session, run: RunKey, after_seq: int, limit: int) -> RunEventPage | None:
    rows = await session.read(
        "events_after",
        namespace=run.namespace,
        run_id=run.run_id,
        after_seq=after_seq,
        limit=limit,
        page_bytes=HISTORY_PAGE_BYTES,
        woken=WOKEN,
    )
    if not rows:
        return None
    events = tuple(_event(row) for row in rows if row["seq"] is not None)
    return RunEventPage(_mark(rows[0]), events, more=bool(events) and rows[0]["more"])


def _mark(row: Row) -> RunMark:
    return RunMark(
        run=RunKey(row["namespace"], row["run_id"]),
        seq=row["run_seq"],
        status=RUN_STATUS_OF_CODE[row["run_status"]],
        created_at=row["created_at"],
        finished_at=row["run_finished_at"],
        status_text=row["status_text"] or "",
        progress=row["progress"],
        pause_requested=row["pause_requested"],
        pause_reason=row["pause_reason"] or "",
        cancel_requested=row["cancel_requested"],
        state_at=row["state_at"],
    )


def _event(row: Row) -> RunEvent:
    source = Source(row["source"])
    if is_pause_note(row["step_id"]):
        return pause_event(row["step_id"], row["seq"], row["finished_at"])
    if row["step_id"] == WOKEN:
        return woken_event(row["seq"], row["finished_at"], row["attempt"], read_error(row["error"]))
    # An attempt may outlive its step, if the run was retried from an earlier step.
    kind = STEP_KIND_OF_CODE[row["kind"] or KindCode.FUNCTION]
    status = STEP_STATUS_OF_CODE[row["status"] or StepCode.FAILED]
    begun = source in (Source.BEGUN, Source.ATTEMPT_BEGUN)
    wake_at = planned_wake_at(read_error(row["first_wake"]), row["wake_at"])
    lost = row["retry_at"] == LOST_RETRY_AT
    return RunEvent(
        seq=row["seq"],
        at=(row["started_at"] if begun else row["finished_at"]) or 0,
        kind=event_kind(source, kind, status, lost=lost),
        step_id=row["step_id"],
        name=row["name"] or row["step_id"],
        attempt=row["attempt"],
        output=read_payload(row["output"], row["output_meta"]),
        error=read_error(row["error"]),
        until=wake_at if begun else row["retry_at"] if kind is StepKind.FUNCTION and not lost else None,
        child_run_id=row["child_run_id"],
    )

"""The events of a run, read from its history."""

from collections.abc import Sequence

import msgspec

from ....core.events import LOST_RETRY_AT, RunEvent, RunEventPage, RunMark, Source, event_kind
from ....core.limits import HISTORY_PAGE_BYTES
from ....core.pages.pauses import is_pause_note, pause_event
from ....core.records import RunKey
from ....core.run.wakes import WOKEN, planned_wake_at, woken_event
from ....core.states import RUN_STATUS_OF_CODE, STEP_KIND_OF_CODE, STEP_STATUS_OF_CODE, KindCode, StepKind, StepStatus
from ...rows import read_error, read_payload, write_json
from ..connection.connection import Database, Row
from ..connection.connections import Connections

_DOUBLES = 2  # a seq may be in two rows: of a step, and of its failed attempt


class SqliteEvents(Connections):
    async def events_of(self, run: RunKey, after_seq: int, limit: int) -> RunEventPage | None:
        return await self._read(_events_of, run, after_seq, limit)

    async def markers_of(self, runs: Sequence[RunKey]) -> Sequence[RunMark | None]:
        return await self._read(_markers_of, runs) if runs else ()


def _events_of(database: Database, run: RunKey, after_seq: int, limit: int) -> RunEventPage | None:
    row = database.row("mark_of", (run.run_id, run.namespace))
    if row is None:
        return None
    parameters = {"run_id": run.run_id, "after": after_seq, "limit": _DOUBLES * (limit + 1)}
    places: dict[int, Row] = {}
    for place in database.rows("numbers_after", parameters):
        places.setdefault(place[0], place)
    events: list[RunEvent] = []
    size = 0
    for place in places.values():
        if len(events) == limit:
            break
        event = _event(database, run.run_id, place)
        size += len(event.output.data) if event.output is not None else 0
        size += len(msgspec.json.encode(event.error)) if event.error is not None else 0
        if events and size > HISTORY_PAGE_BYTES:
            break
        events.append(event)
    return RunEventPage(_mark(row), tuple(events), more=len(events) < len(places))


def _markers_of(database: Database, runs: Sequence[RunKey]) -> list[RunMark | None]:
    ids = write_json([run.run_id for run in runs])
    markers = {mark.run: mark for mark in map(_mark, database.rows("markers_of", (ids,)))}
    return [markers.get(run) for run in runs]


def _mark(row: Row) -> RunMark:
    return RunMark(
        run=RunKey(row[1], row[0]),
        seq=row[2],
        status=RUN_STATUS_OF_CODE[row[3]],
        created_at=row[4],
        finished_at=row[5],
        status_text=row[6] or "",
        progress=row[7],
        pause_requested=bool(row[8]),
        pause_reason=row[9] or "",
        cancel_requested=bool(row[10]),
        state_at=row[11],
    )


def _event(database: Database, run_id: str, place: Row) -> RunEvent:
    seq, code, step_id, begun_seq = place
    source = Source(code)
    step = database.row("event_of_step", (run_id, step_id))
    if source in (Source.ATTEMPT_BEGUN, Source.ATTEMPT_FAILED):
        attempt = database.row("event_of_attempt", (run_id, step_id, begun_seq))
        assert attempt is not None  # read from the same snapshot
        if is_pause_note(step_id):
            return pause_event(step_id, seq, attempt[2])
        if step_id == WOKEN:
            return woken_event(seq, attempt[2], attempt[0], read_error(attempt[4]))
        # An attempt may outlive its step, if the run was retried from an earlier step.
        name, kind = (step_id, StepKind.FUNCTION) if step is None else (step[0], STEP_KIND_OF_CODE[step[1]])
        return _attempt_event(seq, source, step_id, attempt, name, kind)
    assert step is not None  # as above
    name, kind_code, status, number, started_at, finished_at, wake_at, child_run_id, output, output_meta, error = step
    ended = source is Source.RESULT
    if not ended and kind_code == KindCode.SLEEP:
        note = database.row("first_wake_of", (run_id, WOKEN, step_id))
        wake_at = planned_wake_at(read_error(note[0]) if note else None, wake_at)
    return RunEvent(
        seq=seq,
        at=(finished_at if ended else started_at) or 0,
        kind=event_kind(source, STEP_KIND_OF_CODE[kind_code], STEP_STATUS_OF_CODE[status]),
        step_id=step_id,
        name=name,
        attempt=number,
        output=read_payload(output, output_meta) if ended else None,
        error=read_error(error) if ended else None,
        until=None if ended else wake_at,
        child_run_id=child_run_id,
    )


def _attempt_event(  # noqa: PLR0917  a row, and the name and kind of its step
    seq: int, source: Source, step_id: str, row: Row, name: str, kind: StepKind
) -> RunEvent:
    number, started_at, finished_at, retry_at, error = row
    failed = source is Source.ATTEMPT_FAILED
    lost = retry_at == LOST_RETRY_AT
    return RunEvent(
        seq=seq,
        at=(finished_at if failed else started_at) or 0,
        kind=event_kind(source, kind, StepStatus.FAILED, lost=lost),
        step_id=step_id,
        name=name,
        attempt=number,
        error=read_error(error) if failed else None,
        until=retry_at if failed and not lost and kind is StepKind.FUNCTION else None,
    )

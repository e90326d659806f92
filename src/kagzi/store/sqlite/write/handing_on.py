"""Unread signals of a run that has ended: see core.run.handing_on."""

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.records import RunKey
from ....core.run.control import start_effects
from ....core.run.handing_on import EndedRun, KeptStart, end_with_unread, handed_on, next_start, without_request_id
from ....core.times import Timestamp
from ...protocol import LeaseTerms
from .fast_path import WritePlan, Writer
from .new_runs import create_run

_NO_TERMS = LeaseTerms(until=0, renew_before=0)  # no worker has it yet


def hand_on(writer: Writer, run_id: str, now: Timestamp) -> Effects:
    """The run has just ended: start the next one if unread signals are to be handed on."""
    if (ended := _read(writer, run_id)) is None:
        return NO_EFFECTS
    if ended.first is None:
        return Effects(unread=(end_with_unread(ended),))
    start = next_start(ended, ended.first, now)
    if writer.database.row("run_of_request", (start.run.namespace, start.request_id)) is not None:
        start = without_request_id(start)
    plan = WritePlan(writer, now, _NO_TERMS)
    started = create_run(plan, start, leased=False)
    plan.flush()
    moved = _move(writer, ended, started.run_id, first=ended.first.number)
    left = handed_on(ended, moved, started.run_id, starts=True)
    return merge([start_effects(start, started.status), Effects(unread=(left,))])


def hand_on_to(writer: Writer, run_id: str, next_run_id: str) -> Effects:
    """The same if another run has just taken its place."""
    if (ended := _read(writer, run_id)) is None:
        return NO_EFFECTS
    if ended.first is None:
        return Effects(unread=(end_with_unread(ended),))
    moved = _move(writer, ended, next_run_id)
    return Effects(unread=(handed_on(ended, moved, next_run_id, starts=False),))


def _read(writer: Writer, run_id: str) -> EndedRun | None:
    """None: it has no unread signals."""
    row = writer.database.row("ended_with_unread", (run_id,))
    if row is None:
        return None
    namespace, workflow_id, workflow_type, version, unread, number, request_id, start_request = row
    first = None if number is None else KeptStart(number=number, request_id=request_id, start_request=start_request)
    return EndedRun(
        run=RunKey(namespace, run_id),
        workflow_id=workflow_id,
        workflow_type=workflow_type,
        version=version,
        unread=unread,
        first=first,
    )


def _move(writer: Writer, ended: EndedRun, next_run_id: str, *, first: int = 0) -> int:
    runs = {"run_id": ended.run.run_id, "next_run_id": next_run_id}
    moved = writer.database.run("hand_on_signals", runs | {"first": first})
    writer.database.run("count_unread", (moved, next_run_id))
    writer.database.run("handed_on", runs | {"moved": moved})
    if (fence := writer.fences.get(next_run_id)) is not None:
        fence.related = 1
    return moved

"""Unread signals of runs that have ended: see core.run.handing_on."""

from collections.abc import Sequence

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.records import RunKey
from ....core.run.commands import StartRun
from ....core.run.control import start_effects
from ....core.run.handing_on import EndedRun, KeptStart, end_with_unread, handed_on, next_start, without_request_id
from ....core.states import RUN_STATUS_OF_CODE
from ....core.times import Timestamp
from ..connection.connection import Row, Session
from .endings import MovedError
from .new_runs import lone_values


async def hand_on(session: Session, run_ids: Sequence[str], now: Timestamp) -> Effects:
    """These runs have ended in this transaction: start the next runs if unread signals are to be handed on."""
    if not run_ids:
        return NO_EFFECTS
    return merge([await _hand_on(session, row, now) for row in await _read(session, run_ids)])


async def hand_on_to(session: Session, run_id: str, next_run_id: str) -> Effects:
    """The same if another run, which has no signals yet, has just taken its place."""
    effects: list[Effects] = []
    for ended in await _read(session, [run_id]):
        if ended.first is None:
            effects.append(Effects(unread=(end_with_unread(ended),)))
            continue
        [row] = await session.read("hand_on_signals", ended_run_id=run_id, next_run_id=next_run_id)
        effects.append(Effects(unread=(handed_on(ended, row["moved"], next_run_id, starts=False),)))
    return merge(effects)


async def _hand_on(session: Session, ended: EndedRun, now: Timestamp) -> Effects:
    first = ended.first
    if first is None:
        return Effects(unread=(end_with_unread(ended),))
    start = next_start(ended, first, now)
    rows = await _start(session, ended, first, start, now)
    if not rows:
        start = without_request_id(start)
        rows = await _start(session, ended, first, start, now)
    if not rows:
        raise MovedError
    left = handed_on(ended, rows[0]["moved"], start.run.run_id, starts=True)
    return merge([start_effects(start, RUN_STATUS_OF_CODE[rows[0]["status"]]), Effects(unread=(left,))])


async def _start(session: Session, ended: EndedRun, first: KeptStart, start: StartRun, now: Timestamp) -> Sequence[Row]:
    """Empty if another run has its request id."""
    return await session.read(
        "start_next_run",
        **lone_values(start, now, leased=False),
        limited=True,
        ended_run_id=ended.run.run_id,
        first=first.number,
    )


async def _read(session: Session, run_ids: Sequence[str]) -> list[EndedRun]:
    """Those that have unread signals."""
    return [_ended(row) for row in await session.read("ended_with_unread", run_ids=run_ids)]


def _ended(row: Row) -> EndedRun:
    first = None
    if row["number"] is not None:
        first = KeptStart(number=row["number"], request_id=row["request_id"], start_request=row["start_request"])
    return EndedRun(
        run=RunKey(row["namespace"], row["run_id"]),
        workflow_id=row["workflow_id"],
        workflow_type=row["workflow_type"],
        version=row["version"],
        unread=row["unread_signals"],
        first=first,
    )

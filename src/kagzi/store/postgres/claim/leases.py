"""Leases: prolonged by heartbeats, cut short when a session closes, handed back. None of it waits for a locked row."""

import asyncio
from collections.abc import Sequence

from ....core.records import Held
from ....core.times import Timestamp
from ...protocol import Overdue, Renewal, TypeKey
from ..connection.connection import Session

_TRIES = 5
_PAUSE_S = 0.02


async def renew(session: Session, held: Sequence[Held], until: Timestamp, overdue_at: Timestamp) -> Renewal:
    rows = await session.write("renew_leases", until=until, overdue_at=overdue_at, **_arrays(held))
    lost = _at(held, [row["n"] for row in rows if row["lost"]])
    cancelled: dict[int, str] = {row["n"]: row["cancel_reason"] or "" for row in rows if row["cancelling"]}
    runs = [each.run for each in _at(held, list(cancelled))]
    late = [row for row in rows if row["step_id"] is not None]
    overdue = [
        Overdue(each, row["step_id"], row["attempt"], row["timeout_ms"])
        for each, row in zip(_at(held, [row["n"] for row in late]), late, strict=True)
    ]
    pausing = [each.run for each in _at(held, sorted({row["n"] for row in rows if row["pausing"]}))]
    return Renewal(tuple(lost), tuple(zip(runs, cancelled.values(), strict=True)), tuple(overdue), tuple(pausing))


async def cut(session: Session, held: Sequence[Held], until: Timestamp) -> None:
    """A row that stays locked is left: its lease ends in its own time."""
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        rows = await session.write("cut_leases", until=until, **_arrays(held))
        if not rows:
            return
        held = _at(held, [row["n"] for row in rows])


async def lose(
    session: Session, held: Sequence[Held], now: Timestamp, untils: Sequence[Timestamp]
) -> Sequence[TypeKey]:
    """A row that stays locked is left: its lease ends in its own time."""
    woken: set[TypeKey] = set()
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        rows = await session.write("lose_leases", now=now, untils=untils, **_arrays(held))
        woken |= {TypeKey(row["namespace"], row["workflow_type"]) for row in rows if row["n"] is None}
        left: list[int] = [row["n"] for row in rows if row["n"] is not None]
        held = _at(held, left)
        untils = [until for number, until in enumerate(untils, start=1) if number in left]
        if not held:
            break
    return tuple(sorted(woken))


async def release(session: Session, held: Sequence[Held], now: Timestamp) -> Sequence[TypeKey]:
    """A row that stays locked is left: its lease ends in its own time."""
    woken: set[TypeKey] = set()
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        rows = await session.write("release_leases", now=now, **_arrays(held))
        woken |= {TypeKey(row["namespace"], row["workflow_type"]) for row in rows if row["n"] is None}
        held = _at(held, [row["n"] for row in rows if row["n"] is not None])
        if not held:
            break
    return tuple(woken)


def _at(held: Sequence[Held], numbers: Sequence[int]) -> list[Held]:
    return [held[number - 1] for number in numbers]


def _arrays(held: Sequence[Held]) -> dict[str, Sequence[object]]:
    return {
        "run_ids": [each.run.run_id for each in held],
        "namespaces": [each.run.namespace for each in held],
        "leases": [each.lease.counter for each in held],
        "nonces": [each.lease.nonce for each in held],
    }

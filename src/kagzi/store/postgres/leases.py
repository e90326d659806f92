"""Leases: prolonged by heartbeats, cut short when a session closes, handed back. None of it waits for a locked row."""

import asyncio
from collections.abc import Sequence

from ...core.records import Held
from ...core.times import Timestamp
from ..protocol import Renewal, TypeKey
from .connections import Session

_TRIES = 5
_PAUSE_S = 0.02


async def renew(session: Session, held: Sequence[Held], until: Timestamp) -> Renewal:
    rows = await session.write("renew_leases", until, *_columns(held))
    lost = _at(held, [row["n"] for row in rows if row["lost"]])
    cancelled = [row for row in rows if not row["lost"]]
    runs = [each.run for each in _at(held, [row["n"] for row in cancelled])]
    reasons: list[str] = [row["cancel_reason"] or "" for row in cancelled]
    return Renewal(tuple(lost), tuple(zip(runs, reasons, strict=True)))


async def cut(session: Session, held: Sequence[Held], until: Timestamp) -> None:
    """A row that stays locked is left: its lease ends in its own time."""
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        rows = await session.write("cut_leases", until, *_columns(held))
        if not rows:
            return
        held = _at(held, [row["n"] for row in rows])


async def release(session: Session, held: Sequence[Held], now: Timestamp) -> Sequence[TypeKey]:
    """A row that stays locked is left: its lease ends in its own time."""
    woken: set[TypeKey] = set()
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        rows = await session.write("release_leases", now, *_columns(held))
        woken |= {TypeKey(row["namespace"], row["workflow_type"]) for row in rows if row["n"] is None}
        held = _at(held, [row["n"] for row in rows if row["n"] is not None])
        if not held:
            break
    return tuple(woken)


def _at(held: Sequence[Held], numbers: Sequence[int]) -> list[Held]:
    return [held[number - 1] for number in numbers]


def _columns(held: Sequence[Held]) -> tuple[Sequence[object], ...]:
    return (
        [each.run.run_id for each in held],
        [each.run.namespace for each in held],
        [each.lease.counter for each in held],
        [each.lease.nonce for each in held],
    )

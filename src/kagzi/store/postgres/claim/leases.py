"""Leases: renewed by heartbeats, shortened when a session closes, handed back. Nothing here waits for a locked row."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ....core.effects import Effects, pending_effects
from ....core.records import RunLease
from ....core.times import Timestamp
from ...protocol import Overdue, Renewal, TypeKey
from ..connection.connection import Rows, Session

_TRIES = 5
_PAUSE_S = 0.02


async def renew(
    session: Session, leased: Sequence[RunLease], now: Timestamp, until: Timestamp, *, grace_us: int = 0
) -> Renewal:
    rows = await session.write("renew_leases", until=until, overdue_at=now - grace_us, **_arrays(leased))
    lost = _at(leased, [row["n"] for row in rows if row["lost"]])
    cancelled: dict[int, str] = {row["n"]: row["cancel_reason"] or "" for row in rows if row["cancelling"]}
    runs = [each.run for each in _at(leased, list(cancelled))]
    late = [row for row in rows if row["step_id"] is not None]
    overdue = [
        Overdue(each, row["step_id"], row["attempt"], row["timeout_ms"])
        for each, row in zip(_at(leased, [row["n"] for row in late]), late, strict=True)
    ]
    pausing = [each.run for each in _at(leased, sorted({row["n"] for row in rows if row["pausing"]}))]
    return Renewal(tuple(lost), tuple(zip(runs, cancelled.values(), strict=True)), tuple(overdue), tuple(pausing))


async def shorten_leases(session: Session, leased: Sequence[RunLease], until: Timestamp) -> None:
    """A row that stays locked is skipped: its lease ends at its own time."""
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        rows = await session.write("shorten_leases", until=until, **_arrays(leased))
        if not rows:
            return
        leased = _at(leased, [row["n"] for row in rows])


async def lost_before_ack(
    session: Session, leased: Sequence[RunLease], now: Timestamp, untils: Sequence[Timestamp]
) -> Effects:
    until_of = dict(zip(leased, untils, strict=True))
    return await _hand_back(
        leased,
        lambda some: session.write(
            "lost_before_ack", now=now, untils=[until_of[each] for each in some], **_arrays(some)
        ),
    )


async def release(session: Session, leased: Sequence[RunLease], now: Timestamp) -> Effects:
    return await _hand_back(leased, lambda some: session.write("release_leases", now=now, **_arrays(some)))


async def _hand_back(leases: Sequence[RunLease], write: Callable[[Sequence[RunLease]], Awaitable[Rows]]) -> Effects:
    """A row that stays locked is skipped: its lease ends at its own time."""
    pending: set[TypeKey] = set()
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S)
        rows = await write(leases)
        pending |= {TypeKey(row["namespace"], row["workflow_type"]) for row in rows if row["n"] is None}
        leases = _at(leases, [row["n"] for row in rows if row["n"] is not None])
        if not leases:
            break
    return pending_effects(pending, released=True)


def _at(leased: Sequence[RunLease], numbers: Sequence[int]) -> list[RunLease]:
    return [leased[number - 1] for number in numbers]


def _arrays(leased: Sequence[RunLease]) -> dict[str, Sequence[object]]:
    return {
        "run_ids": [each.run.run_id for each in leased],
        "namespaces": [each.run.namespace for each in leased],
        "leases": [each.lease.counter for each in leased],
        "nonces": [each.lease.nonce for each in leased],
    }

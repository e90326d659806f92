"""Leases of runs: renewed by heartbeats, shortened when a session closes, handed back."""

from collections.abc import Iterable, Sequence

import msgspec

from ....core.effects import Effects, pending_effects
from ....core.records import RunKey, RunLease
from ....core.states import RunCode
from ....core.times import Timestamp
from ...protocol import Overdue, Renewal, TypeKey
from ...rows import write_json
from ..connection.connection import Row
from ..write.fast_path import Writer

_decode_leases = msgspec.json.Decoder(list[tuple[str, str, int, int, int, str, int]]).decode


def renew(
    writer: Writer, leased: Sequence[RunLease], now: Timestamp, until: Timestamp, *, grace_us: int = 0
) -> Renewal:
    """See Store.renew."""
    database = writer.database
    database.run("renew_leases", {"rows": _lease_rows(leased), "until": until})
    late = database.rows("overdue_steps", {"rows": _lease_rows(leased), "at": now - grace_us})
    overdue: list[Overdue] = []
    for step in late:
        place: int = step[0]
        overdue.append(Overdue(leased[place], *step[1:]))
    row = database.row("leases_of", (write_json([one.run.run_id for one in leased]),))
    current = {entry[:4]: entry[4:] for entry in _decode_leases(row[0] if row else "[]")}
    lost: list[RunLease] = []
    cancel_requested: list[tuple[RunKey, str]] = []
    pause_requested: list[RunKey] = []
    for one in leased:
        state = current.get((one.run.run_id, one.run.namespace, one.lease.counter, one.lease.nonce))
        if state is None:
            lost.append(one)
            continue
        fence = writer.fences.get(one.run.run_id)
        if fence is not None:
            fence.lease_until = until
        if state[0]:
            cancel_requested.append((one.run, state[1]))
        if state[2]:
            pause_requested.append(one.run)
    return Renewal(tuple(lost), tuple(cancel_requested), tuple(overdue), tuple(pause_requested))


def shorten_leases(writer: Writer, leased: Sequence[RunLease], until: Timestamp) -> None:
    """See Store.shorten_leases."""
    for (run_id,) in writer.database.rows("shorten_leases", {"rows": _lease_rows(leased), "until": until}):
        writer.fences.forget(run_id)


def lost_before_ack(writer: Writer, leased: Sequence[RunLease], now: Timestamp, untils: Sequence[Timestamp]) -> Effects:
    """See Store.lost_before_ack."""
    parameters = {"rows": _lease_rows(leased), "untils": write_json(untils), "now": now}
    return freed(writer, writer.database.rows("lost_before_ack", parameters))


def release(writer: Writer, leased: Sequence[RunLease], now: Timestamp) -> Effects:
    """See Store.release."""
    return freed(writer, writer.database.rows("release_leases", {"rows": _lease_rows(leased), "now": now}))


def freed(writer: Writer, rows: Iterable[Row]) -> Effects:
    """The effects for runs that are no longer leased, from rows of (run_id, namespace, workflow_type, status)."""
    pending: set[TypeKey] = set()
    for run_id, namespace, workflow_type, status in rows:
        writer.fences.forget(run_id)
        if status == RunCode.PENDING:
            pending.add(TypeKey(namespace, workflow_type))
    return pending_effects(pending, released=True)


def _lease_rows(leased: Sequence[RunLease]) -> str:
    return write_json([(one.run.run_id, one.run.namespace, one.lease.counter, one.lease.nonce) for one in leased])

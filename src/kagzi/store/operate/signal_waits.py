"""The external signals that runs wait for, and those that they have not received."""

from collections.abc import Mapping, Sequence

from ...core.ids import is_uuid
from ...core.pages.signal_waits import WAITS_OF_A_RUN, SignalWait
from ...core.records import RunKey
from ..rows import Row, read_payload
from ..sessions import Session


async def read_signal_waits(session: Session, namespace: str, run_ids: Sequence[str]) -> Sequence[SignalWait]:
    """See Store.signal_waits."""
    known = [run_id for run_id in dict.fromkeys(run_ids) if is_uuid(run_id)]
    rows, _ = await session.page(
        "signal_waits", len(known) * WAITS_OF_A_RUN, namespace=namespace, run_ids=known, most=WAITS_OF_A_RUN
    )
    return tuple(map(_read, rows))


async def read_unread_signals(session: Session, run: RunKey, limit: int) -> Mapping[str, int]:
    """See Store.unread_signals."""
    if not is_uuid(run.run_id):
        return {}
    rows = await session.read("unread_by_name", run_id=run.run_id, namespace=run.namespace, limit=limit)
    return {row["name"]: row["count"] for row in rows}


def _read(row: Row) -> SignalWait:
    return SignalWait(
        run_id=row["run_id"],
        step_id=row["step_id"],
        signal=row["name"],
        since=row["created_at"],
        until=row["wake_at"],
        schema=read_payload(row["input"], row["input_meta"]),
    )

"""Claims: lease PENDING runs to workers, with everything needed to continue."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import msgspec

from ....core.limits import CLAIM_BYTES, HISTORY_PAGE_BYTES
from ....core.records import NO_LABELS, ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunKey
from ....core.states import KindCode, StepStatus
from ....core.times import Timestamp
from ....core.traces.ids import OWN_TRACE_SEQ
from ...protocol import Claimed, TypeKey, Want
from ...rows import HISTORY_COLUMNS, history_reader, read_payload, require_payload, write_json
from ..connection.connection import Database
from ..write.fast_path import Writer
from ..write.fences import Fence
from .permits import LimitedClaim

_Leased: TypeAlias = tuple[
    str,
    str,
    int,
    int,
    str,
    str,
    str,
    int,
    dict[str, str] | None,
    int,
    int | None,
    int | None,
    str | None,
    str | None,
    int,
    int,
    int | None,
    int,
]
_decode_candidates = msgspec.json.Decoder(list[tuple[int, int, str]]).decode
_decode_leased = msgspec.json.Decoder(list[_Leased]).decode
_decode_inputs = msgspec.json.Decoder(list[tuple[str, int, str | None, str | None, str | None, str | None]]).decode

_decode_sizes = msgspec.json.Decoder(dict[str, int]).decode
_decode_steps = msgspec.json.Decoder(list[list[Any]]).decode

_SHORT_SEQ = 16  # a run with a lower seq has few steps
_SHORT = ("run_id", "large", *HISTORY_COLUMNS)  # the columns of a row of `short_histories`
_OUTPUT, _DETAILS = _SHORT.index("output"), _SHORT.index("details")
_read_short = history_reader(_SHORT.index)

_ROW_BYTES = 64  # the size of a step in a message besides its id and payloads
_OPEN = (StepStatus.PENDING, StepStatus.RUNNING)


def claim(
    writer: Writer, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp, *, old_before: Timestamp = 0
) -> Claimed:
    """See Store.claim."""
    claimed: list[ClaimedRun] = []
    limited_claims: list[LimitedClaim] = []
    waiting: set[TypeKey] = set()
    truncated: set[TypeKey] = set()
    left = CLAIM_BYTES
    for want in wants:
        limits = writer.types.limits(want.namespace, want.workflow_type)
        spare = _spare(writer, want.namespace)
        if limits is None:
            ready = _candidates(writer, want, want.limit if spare is None else min(want.limit, spare), now)
            run_ids, left = _fitting(writer, list(ready), left)
            if len(run_ids) < len(ready):
                truncated.add(TypeKey(want.namespace, want.workflow_type))
        else:
            limited_claim = LimitedClaim(writer, want, limits, now)
            ready = limited_claim.choose(spare)
            run_ids = list(ready)
            limited_claims.append(limited_claim)
        if run_ids:
            claimed += _lease(writer, want, run_ids, ready, nonce=nonce, now=now, until=until, old_before=old_before)
        if len(run_ids) < want.limit and (limits is not None or spare is not None):
            waiting |= _waiting(writer, want, limited_namespace=spare is not None)
    return Claimed(
        claimed,
        limited=frozenset(each.key for each in limited_claims),
        waiting=frozenset(waiting),
        again_at={each.key: each.again_at for each in limited_claims if each.again_at is not None},
        more=frozenset(each.key for each in limited_claims if each.more) | truncated,
    )


def _candidates(writer: Writer, want: Want, limit: int, now: Timestamp) -> dict[str, Timestamp]:
    """Run ids, and since when each is ready."""
    if limit <= 0 or not want.versions:
        return {}
    candidates: list[tuple[int, int, str]] = []
    for version in (None, *dict.fromkeys(want.versions)):
        parameters = {
            "namespace": want.namespace,
            "workflow_type": want.workflow_type,
            "version": version,
            "build_id": want.build_id,
            "now": now,
            "limit": limit,
        }
        row = writer.database.row("pending_runs", parameters)
        candidates += _decode_candidates(row[0] if row else "[]")
    candidates.sort()
    return {run_id: ready_at for _, ready_at, run_id in candidates[:limit]}


def _fitting(writer: Writer, run_ids: list[str], left: int) -> tuple[list[str], int]:
    """The first run ids that fit in `left` bytes, and the bytes that remain. The first run of a claim always fits."""
    if not run_ids:
        return run_ids, left
    row = writer.database.row("claimed_bytes", (write_json(run_ids),))
    sizes = _decode_sizes(row[0]) if row else {}
    for place, run_id in enumerate(run_ids):
        if left <= 0:
            return run_ids[:place], left
        left -= sizes.get(run_id, 0)
    return run_ids, left


def _spare(writer: Writer, namespace: str) -> int | None:
    """How many more runs the namespace's running_runs_limit allows; None: no limit."""
    record = writer.namespaces.find(namespace)
    if record is None or record.running_runs_limit is None:
        return None
    limit = record.running_runs_limit
    counted = writer.database.row("count_running_runs", (namespace, limit))
    return max(0, limit - (counted[0] if counted else 0))


def _waiting(writer: Writer, want: Want, *, limited_namespace: bool) -> set[TypeKey]:
    """The type, and its namespace if that is limited, if runs of the type wait for a permit."""
    key = TypeKey(want.namespace, want.workflow_type)
    if writer.database.row("type_waits", key) is None:
        return set()
    return {key, TypeKey(want.namespace, "")} if limited_namespace else {key}


def _lease(
    writer: Writer,
    want: Want,
    run_ids: list[str],
    ready: Mapping[str, Timestamp],
    *,
    nonce: int,
    now: Timestamp,
    until: Timestamp,
    old_before: Timestamp,
) -> Iterator[ClaimedRun]:
    database = writer.database
    ids = write_json(run_ids)
    parameters = {"nonce": nonce, "worker_id": want.worker_id, "until": until, "now": now, "version": want.versions[0]}
    limits = {"old_before": old_before, "long_seq": OWN_TRACE_SEQ}
    database.run("lease_runs", parameters | limits | {"run_ids": ids})
    encoded = database.row("leased_runs", (ids,))
    rows = {row[0]: row for row in _decode_leased(encoded[0] if encoded else "[]")}
    payloads = _read_inputs(database, ids)
    histories = _short_histories(database, [run_id for run_id in run_ids if 0 < rows[run_id][3] <= _SHORT_SEQ])
    for run_id in run_ids:
        row = rows[run_id]
        if (history := histories.get(run_id)) is None:
            history = read_history(database, run_id, 0) if row[3] else HistoryPage()
        fence = Fence(run_id, row[1], row[2], nonce, row[3], row[10], until, want.worker_id)
        fence.related, fence.cancelling, fence.lost_leases = row[14], row[11] is not None, row[15]
        if not history.has_more:
            fence.last_result = max((step.seq for step in history.steps), default=0)
        fence.steps_open = frozenset(step.step_id for step in history.steps if step.status in _OPEN)
        writer.fences.put(fence)
        yield ClaimedRun(
            run=RunKey(row[1], run_id),
            lease=Lease(row[2], nonce),
            worker_id=want.worker_id,
            workflow_id=row[4],
            workflow_type=row[5],
            version=row[6],
            attempt=row[7],
            input=payloads.get((run_id, KindCode.INPUT)),
            context=payloads.get((run_id, KindCode.CONTEXT)),
            labels=row[8] or NO_LABELS,
            created_at=row[9],
            claimed_at=now,
            ready_at=ready[run_id],
            started_at=row[16],
            deadline_at=row[10],
            last_seq=row[3],
            history=history,
            cancel_requested=row[11] is not None,
            cancel_reason=row[12] or "",
            parent_run_id=row[13],
            own_traces_from=row[17],
        )


def _read_inputs(database: Database, run_ids: str) -> dict[tuple[str, int], Payload]:
    """Inputs and contexts by run and kind."""
    encoded = database.row("inputs_of", (run_ids,))
    payloads: dict[tuple[str, int], Payload] = {}
    for run_id, kind, data, metadata, context, context_metadata in _decode_inputs(encoded[0] if encoded else "[]"):
        if data is None:
            row = database.row("large_input", (run_id, kind))
            payload = read_payload(row[0] if row else None, metadata)
        else:
            payload = read_payload(bytes.fromhex(data), metadata)
        if payload is not None:
            payloads[run_id, kind] = payload
        if context is not None:
            payloads[run_id, KindCode.CONTEXT] = require_payload(bytes.fromhex(context), context_metadata)
    return payloads


def _short_histories(database: Database, run_ids: list[str]) -> dict[str, HistoryPage]:
    """Histories of the runs with few and only small steps; the others are left out. One statement and one row for all,
    as in `inputs_of`: runs that sleep or wait for a signal often wake by the thousand."""
    if len(run_ids) < 2:
        return {}
    encoded = database.row("short_histories", (write_json(run_ids),))
    steps: dict[str, list[HistoryStep]] = {}
    large: set[str] = set()
    for row in _decode_steps(encoded[0] if encoded else "[]"):
        if row[1]:
            large.add(row[0])
            continue
        for place in (_OUTPUT, _DETAILS):
            if row[place] is not None:
                row[place] = bytes.fromhex(row[place])
        steps.setdefault(row[0], []).append(_read_short(row))
    return {
        run_id: HistoryPage(tuple(read), False, read[-1].begun_seq)
        for run_id, read in steps.items()
        if run_id not in large
    }


@cache
def _history_places(columns: tuple[str, ...]) -> tuple[Callable[[Any], HistoryStep], int, int, int, int]:
    """How to read a row of `history_after`, and the positions of the columns that determine its size."""
    place = columns.index
    return history_reader(place), place("step_id"), place("output"), place("error"), place("details")


def history(database: Database, run: RunKey, lease: Lease, after: int, known_seq: int = 0) -> HistoryPage | None:
    """See Store.history."""
    leased = database.row("leased_run", (run.run_id, run.namespace, lease.counter, lease.nonce))
    return None if leased is None else read_history(database, run.run_id, after, known_seq)


def read_history(database: Database, run_id: str, after: int, known_seq: int = 0) -> HistoryPage:
    """Steps begun after `after`, until the page is full; at least one."""
    steps: list[HistoryStep] = []
    size = 0
    cursor = database.cursor("history_after", (known_seq, run_id, after))
    read, step_id, output, error, details = _history_places(database.columns("history_after", cursor))
    try:
        for row in cursor:
            size += _ROW_BYTES + len(row[step_id]) + len(row[output] or b"") + len(row[error] or "")
            size += len(row[details] or b"")
            if steps and size > HISTORY_PAGE_BYTES:
                return HistoryPage(tuple(steps), True, steps[-1].begun_seq)
            steps.append(read(row))
    finally:
        cursor.close()
    return HistoryPage(tuple(steps), False, steps[-1].begun_seq if steps else after)

"""Claims: runs go to the workers that want them, with everything needed to go on."""

from collections.abc import Sequence
from typing import NamedTuple

from ...core.limits import HISTORY_PAGE_BYTES
from ...core.records import ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunKey
from ...core.states import KindCode, StepCode
from ...core.times import Timestamp
from ..protocol import Want
from .connections import Row, Rows, Session
from .rows import read_claimed_run, read_history_step, read_payload

_STEP_OVERHEAD_BYTES = 64
# More rows than fit into a page: the one after the last tells that there are more.
_PAGE_MAX_STEPS = HISTORY_PAGE_BYTES // _STEP_OVERHEAD_BYTES + 2


class _Wanted(NamedTuple):
    """Everybody who wants runs of one type at the same versions."""

    namespace: str
    workflow_type: str
    versions: tuple[str, ...]


class Claims:
    """Remembers which namespaces limit their running runs: only there a claim locks the namespace first."""

    def __init__(self) -> None:
        self.limited: set[str] = set()

    async def claim(
        self, session: Session, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp
    ) -> Sequence[ClaimedRun]:
        claimed: list[ClaimedRun] = []
        for wanted in _without_overlap(wants):
            claimed += await self._claim(session, wanted, nonce, now, until)
        return claimed

    async def _claim(
        self, session: Session, wanted: dict[_Wanted, list[Want]], nonce: int, now: Timestamp, until: Timestamp
    ) -> list[ClaimedRun]:
        namespaces = {group.namespace for group in wanted}
        while True:
            locked = self.limited & namespaces
            try:
                async with session.transaction():
                    if locked:
                        await session.read("lock_namespaces", sorted(locked))
                    claimed: list[ClaimedRun] = []
                    for part in _apart(wanted, locked):
                        rows = await session.read("claim_runs", now, nonce, until, *_arguments(part))
                        if unlocked := {row["namespace"] for row in rows if row["limited"]} - locked:
                            raise _TakenBackError(unlocked)
                        claimed += await _with_history(session, rows, now)
                    return claimed
            except _TakenBackError as taken_back:
                self.limited |= taken_back.namespaces


class _TakenBackError(Exception):
    """Rolls a claim back that did not hold the lock of a limited namespace."""

    def __init__(self, namespaces: set[str]) -> None:
        super().__init__(namespaces)
        self.namespaces = namespaces


def _apart(wanted: dict[_Wanted, list[Want]], limited: set[str]) -> list[dict[_Wanted, list[Want]]]:
    """Groups of limited namespaces one by one, so that each counts what the one before has taken."""
    together = {group: wants for group, wants in wanted.items() if group.namespace not in limited}
    alone = [{group: wants} for group, wants in wanted.items() if group.namespace in limited]
    return [together, *alone] if together else alone


def _without_overlap(wants: Sequence[Want]) -> list[dict[_Wanted, list[Want]]]:
    """Wants by type and versions; those of one type with other versions come later, since they may mean the same runs."""
    parts: list[dict[_Wanted, list[Want]]] = []
    seen: list[dict[tuple[str, str], _Wanted]] = []
    for want in wants:
        if want.limit <= 0:
            continue
        group = _Wanted(want.namespace, want.workflow_type, want.versions)
        for part, groups in zip(parts, seen, strict=True):
            if groups.setdefault(group[:2], group) == group:
                part.setdefault(group, []).append(want)
                break
        else:
            parts.append({group: [want]})
            seen.append({group[:2]: group})
    return parts


def _arguments(wanted: dict[_Wanted, list[Want]]) -> tuple[Sequence[object], ...]:
    versions: list[tuple[int, str]] = []
    shares: list[tuple[int, str, int, int]] = []  # group, worker, and which of the group's runs are its own
    totals: list[int] = []
    for number, (group, wants) in enumerate(wanted.items(), start=1):
        versions += [(number, version) for version in group.versions]
        total = 0
        for want in wants:
            shares.append((number, want.worker_id, total, total + want.limit))
            total += want.limit
        totals.append(total)
    return (
        [group.namespace for group in wanted],
        [group.workflow_type for group in wanted],
        [group.versions[0] if group.versions else "" for group in wanted],
        totals,
        *(tuple(zip(*versions, strict=True)) if versions else ((), ())),
        *zip(*shares, strict=True),
    )


async def _with_history(session: Session, rows: Rows, now: Timestamp) -> list[ClaimedRun]:
    pages = await _first_pages(session, rows)
    late = [rows[number - 1]["run_id"] for number, page in pages.items() if any(_is_late(step, now) for step in page)]
    if not late:
        return _claimed(rows, pages, now, {})
    resolved = await session.read("resolve_due_waits", now, late)
    seqs: dict[str, int] = {row["run_id"]: row["seq"] for row in resolved}
    return _claimed(rows, await _first_pages(session, rows), now, seqs)


def _is_late(step: Row, now: Timestamp) -> bool:
    """A sleep or a wait for a signal that ended while nobody held the run."""
    wake_at: Timestamp | None = step["wake_at"]
    return wake_at is not None and wake_at <= now and step["status"] == StepCode.RUNNING


async def _first_pages(session: Session, rows: Rows) -> dict[int, list[Row]]:
    pages: dict[int, list[Row]] = {}
    if rows:
        run_ids = [row["run_id"] for row in rows]
        for row in await session.read(
            "first_pages", run_ids, _STEP_OVERHEAD_BYTES, HISTORY_PAGE_BYTES, _PAGE_MAX_STEPS
        ):
            pages.setdefault(row["n"], []).append(row)
    return pages


def _claimed(rows: Rows, pages: dict[int, list[Row]], now: Timestamp, seqs: dict[str, int]) -> list[ClaimedRun]:
    """`seqs`: of runs that were given another since they were claimed."""
    claimed: list[ClaimedRun] = []
    for number, row in enumerate(rows, start=1):
        page = pages.get(number, [])
        last_seq: int = row["seq"]
        payloads: dict[int, Payload | None] = {}
        steps: list[Row] = []
        for entry in page:
            if entry["kind"] >= KindCode.INPUT:
                payloads[entry["kind"]] = read_payload(entry["output"], entry["output_meta"])
            else:
                steps.append(entry)
        claimed.append(
            read_claimed_run(
                row,
                now=now,
                last_seq=seqs.get(row["run_id"], last_seq),
                input=payloads.get(KindCode.INPUT),
                context=payloads.get(KindCode.CONTEXT),
                history=_page(steps),
            )
        )
    return claimed


async def history(session: Session, run: RunKey, lease: Lease, after: int) -> HistoryPage | None:
    rows = await session.read(
        "next_page",
        run.namespace,
        run.run_id,
        lease.counter,
        lease.nonce,
        after,
        _STEP_OVERHEAD_BYTES,
        HISTORY_PAGE_BYTES,
        _PAGE_MAX_STEPS,
    )
    if not rows:
        return None
    return _page([row for row in rows if row["step_id"] is not None])


def _page(rows: Sequence[Row]) -> HistoryPage:
    steps: tuple[HistoryStep, ...] = tuple(read_history_step(row) for row in rows)
    if not steps:
        return HistoryPage()
    return HistoryPage(steps, has_more=rows[-1]["more"], next_after=steps[-1].begun_seq)

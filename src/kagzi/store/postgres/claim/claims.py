"""Claims: give pending runs to the workers that want them, with everything needed to continue."""

from collections.abc import Sequence
from typing import NamedTuple

from ....core.limits import CLAIM_BYTES, HISTORY_PAGE_BYTES
from ....core.records import ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunKey
from ....core.states import KindCode
from ....core.times import Timestamp
from ...protocol import Claimed, TypeKey, Want
from ...rows import history_reader, read_labels, read_payload
from ..connection.connection import Row, Rows, Session
from ..connection.failures import CONTENTION
from ..parameters import Table
from .permits import Leasing, LimitedClaim, lock_types

_STEP_OVERHEAD_BYTES = 64
# More rows than fit in a page: the extra one shows that there are more.
_PAGE_MAX_STEPS = HISTORY_PAGE_BYTES // _STEP_OVERHEAD_BYTES + 2
_MOST_TYPES = 10_000  # types remembered as limited
_COME_BACK_US = 20_000
_read_step = history_reader()


class _Wanted(NamedTuple):
    """What the wants grouped here have in common: type, versions and build."""

    namespace: str
    workflow_type: str
    versions: tuple[str, ...]
    build_id: str

    @property
    def key(self) -> TypeKey:
        return TypeKey(self.namespace, self.workflow_type)


class Claims:
    """Remembers which namespaces limit running runs and which types have limits: only for these a claim locks first."""

    def __init__(self) -> None:
        self._namespaces: set[str] = set()
        self._types: set[TypeKey] = set()

    async def claim(self, session: Session, wants: Sequence[Want], leasing: Leasing) -> Claimed:
        claim = _Claim(session, leasing)
        for wanted in _without_overlap(wants):
            await self._claim(claim, wanted)
        return claim.answer()

    async def _claim(self, claim: "_Claim", wanted: dict[_Wanted, list[Want]]) -> None:
        namespaces = {group.namespace for group in wanted}
        types = {group.key for group in wanted}
        while True:
            try:
                async with claim.session.transaction():
                    taken = await claim.take(wanted, self._namespaces & namespaces, self._types & types)
                claim.note(taken)
                return
            except _TakenBackError as taken_back:
                self._namespaces |= taken_back.namespaces
                self._types |= taken_back.types
            except CONTENTION:
                claim.come_back(types)
                return
            finally:
                if len(self._types) > _MOST_TYPES:
                    self._types.clear()


class _Taken(NamedTuple):
    """The result of one transaction."""

    runs: list[ClaimedRun]
    limited_claims: list[LimitedClaim]
    waiting: set[TypeKey]  # types that got fewer runs than wanted and have more
    truncated: set[TypeKey]  # the same, because the claim reached its limit of bytes


class _Claim:
    def __init__(self, session: Session, leasing: Leasing) -> None:
        self.session = session
        self._leasing = leasing
        self._now = leasing.now
        self._runs: list[ClaimedRun] = []
        self._limited: set[TypeKey] = set()
        self._waiting_types: set[TypeKey] = set()
        self._again_at: dict[TypeKey, Timestamp] = {}
        self._more: set[TypeKey] = set()

    def answer(self) -> Claimed:
        limited, waiting = frozenset(self._limited), frozenset(self._waiting_types)
        return Claimed(self._runs, limited, waiting, self._again_at, frozenset(self._more))

    def note(self, taken: _Taken) -> None:
        self._runs += taken.runs
        for each in taken.limited_claims:
            self._limited.add(each.key)
            if each.again_at is not None:
                self._again_at[each.key] = each.again_at
            if each.more:
                self._more.add(each.key)
        self._waiting_types |= taken.waiting
        self._more |= taken.truncated

    def come_back(self, types: set[TypeKey]) -> None:
        """The rows stayed locked: claim these types again shortly."""
        self._waiting_types |= types
        self._again_at |= dict.fromkeys(types, self._now + _COME_BACK_US)

    async def take(self, wanted: dict[_Wanted, list[Want]], namespaces: set[str], types: set[TypeKey]) -> _Taken:
        """`namespaces`, `types`: those known to be limited. Raises _TakenBackError if others are limited, too."""
        limits = {}
        if namespaces:
            rows = await self.session.read("lock_namespaces", namespaces=sorted(namespaces))
            limits = {row["namespace"]: row["running_runs_limit"] for row in rows}
        limited_types = await lock_types(self.session, types)
        taken = _Taken([], [], set(), set())
        short: set[TypeKey] = set()
        for part in _apart(
            {group: wants for group, wants in wanted.items() if group.key not in limited_types}, namespaces
        ):
            rows = await self.session.read(
                "claim_runs",
                **self._leasing.parameters,
                most_bytes=CLAIM_BYTES,
                **_tables(part),
            )
            _check(rows, namespaces)
            if rows and rows[0]["truncated"]:
                taken.truncated.update(group.key for group in part)
            taken.runs.extend(await _with_history(self.session, rows, self._now))
            total = sum(want.limit for wants in part.values() for want in wants)
            short |= {group.key for group in part if group.namespace in limits and len(rows) < total}
        for group, wants in wanted.items():
            if (row := limited_types.get(group.key)) is not None:
                limited_claim = LimitedClaim(self.session, row, wants, self._leasing)
                taken.limited_claims.append(limited_claim)
                rows = await limited_claim.claim(await self._spare(group.namespace, limits))
                taken.runs.extend(await _with_history(self.session, rows, self._now))
                if len(rows) < limited_claim.wanted:
                    (taken.waiting if limited_claim.waiting and group.namespace not in limits else short).add(
                        limited_claim.key
                    )
        taken.waiting.update(await self._waiting(short, limits))
        return taken

    async def _spare(self, namespace: str, limits: dict[str, int | None]) -> int | None:
        """How many more runs may run in the namespace; None: any number."""
        limit = limits.get(namespace)
        if limit is None:
            return None
        [counted] = await self.session.read("count_running_runs", namespace=namespace)
        running: int = counted["runs"]
        return max(0, limit - running)

    async def _waiting(self, short: set[TypeKey], limits: dict[str, int | None]) -> set[TypeKey]:
        if not short:
            return set()
        keys = sorted(short)
        rows = await self.session.read(
            "types_that_wait",
            namespaces=[key.namespace for key in keys],
            workflow_types=[key.workflow_type for key in keys],
        )
        waiting = {TypeKey(row["namespace"], row["workflow_type"]) for row in rows}
        return waiting | {TypeKey(key.namespace, "") for key in waiting if limits.get(key.namespace) is not None}


class _TakenBackError(Exception):
    """Rolls back a claim that did not hold the lock of a limited namespace or type."""

    def __init__(self, namespaces: set[str], types: set[TypeKey]) -> None:
        super().__init__(namespaces, types)
        self.namespaces = namespaces
        self.types = types


def _check(rows: Rows, namespaces: set[str]) -> None:
    unlocked = {row["namespace"] for row in rows if row["limited"]} - namespaces
    types = {TypeKey(row["namespace"], row["workflow_type"]) for row in rows if row["type_limited"]}
    if unlocked or types:
        raise _TakenBackError(unlocked, types)


def _apart(wanted: dict[_Wanted, list[Want]], limited: set[str]) -> list[dict[_Wanted, list[Want]]]:
    """One group at a time for limited namespaces, so that each counts what the previous one claimed."""
    together = {group: wants for group, wants in wanted.items() if group.namespace not in limited}
    alone = [{group: wants} for group, wants in wanted.items() if group.namespace in limited]
    return [together, *alone] if together else alone


def _without_overlap(wants: Sequence[Want]) -> list[dict[_Wanted, list[Want]]]:
    """Groups wants by type, versions and build. Groups of one type are claimed in turn: their runs may overlap."""
    parts: list[dict[_Wanted, list[Want]]] = []
    seen: list[dict[tuple[str, str], _Wanted]] = []
    for want in wants:
        if want.limit <= 0:
            continue
        group = _Wanted(want.namespace, want.workflow_type, want.versions, want.build_id)
        for part, groups in zip(parts, seen, strict=True):
            if groups.setdefault(group[:2], group) == group:
                part.setdefault(group, []).append(want)
                break
        else:
            parts.append({group: [want]})
            seen.append({group[:2]: group})
    return parts


def _tables(wanted: dict[_Wanted, list[Want]]) -> dict[str, Table]:
    groups: list[dict[str, object]] = []
    versions: list[dict[str, object]] = []
    shares: list[dict[str, object]] = []  # which worker gets which of the group's runs
    for number, (group, wants) in enumerate(wanted.items(), start=1):
        versions.extend({"n": number, "version": version} for version in group.versions)
        total = 0
        for want in wants:
            until = total + want.limit
            shares.append({"n": number, "worker_id": want.worker_id, "after": total, "until": until})
            total = until
        groups.append(
            {
                "namespace": group.namespace,
                "workflow_type": group.workflow_type,
                "first_version": group.versions[0] if group.versions else "",
                "build_id": group.build_id,
                "wanted": total,
            }
        )
    return {"groups": groups, "versions": versions, "shares": shares}


async def _with_history(session: Session, rows: Rows, now: Timestamp) -> list[ClaimedRun]:
    return _claimed(rows, await _first_pages(session, rows), now)


async def _first_pages(session: Session, rows: Rows) -> dict[int, list[Row]]:
    pages: dict[int, list[Row]] = {}
    if rows:
        run_ids = [row["run_id"] for row in rows]
        for row in await session.read(
            "first_pages",
            run_ids=run_ids,
            step_bytes=_STEP_OVERHEAD_BYTES,
            page_bytes=HISTORY_PAGE_BYTES,
            page_steps=_PAGE_MAX_STEPS,
        ):
            pages.setdefault(row["n"], []).append(row)
    return pages


def _claimed(rows: Rows, pages: dict[int, list[Row]], now: Timestamp) -> list[ClaimedRun]:
    claimed: list[ClaimedRun] = []
    for number, row in enumerate(rows, start=1):
        page = pages.get(number, [])
        payloads: dict[int, Payload | None] = {}
        steps: list[Row] = []
        for entry in page:
            if entry["kind"] >= KindCode.INPUT:
                payloads[entry["kind"]] = read_payload(entry["output"], entry["output_meta"])
                if entry["context"] is not None:
                    payloads[KindCode.CONTEXT] = read_payload(entry["context"], entry["context_meta"])
            else:
                steps.append(entry)
        claimed.append(
            ClaimedRun(
                run=RunKey(row["namespace"], row["run_id"]),
                lease=Lease(row["lease"], row["nonce"]),
                worker_id=row["worker_id"],
                workflow_id=row["workflow_id"],
                workflow_type=row["workflow_type"],
                version=row["version"],
                attempt=row["attempt"],
                input=payloads.get(KindCode.INPUT),
                context=payloads.get(KindCode.CONTEXT),
                labels=read_labels(row["labels"]),
                created_at=row["created_at"],
                claimed_at=now,
                ready_at=row["was_ready_at"],
                started_at=row["started_at"],
                deadline_at=row["deadline_at"],
                last_seq=row["seq"],
                history=_page(steps),
                cancel_requested=row["cancel_requested_at"] is not None,
                cancel_reason=row["cancel_reason"] or "",
                parent_run_id=row["parent_run_id"],
                own_traces_from=row["own_traces_from"],
            )
        )
    return claimed


async def history(session: Session, run: RunKey, lease: Lease, after: int, known_seq: int = 0) -> HistoryPage | None:
    rows = await session.read(
        "next_page",
        namespace=run.namespace,
        run_id=run.run_id,
        lease=lease.counter,
        nonce=lease.nonce,
        after=after,
        step_bytes=_STEP_OVERHEAD_BYTES,
        page_bytes=HISTORY_PAGE_BYTES,
        page_steps=_PAGE_MAX_STEPS,
        known_seq=known_seq,
    )
    if not rows:
        return None
    return _page([row for row in rows if row["step_id"] is not None])


def _page(rows: Sequence[Row]) -> HistoryPage:
    steps: tuple[HistoryStep, ...] = tuple(map(_read_step, rows))
    if not steps:
        return HistoryPage()
    return HistoryPage(steps, has_more=rows[-1]["more"], next_after=steps[-1].begun_seq)

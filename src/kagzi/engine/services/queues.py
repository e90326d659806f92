"""Workflow types for operators: their limits, whether they are paused, and the depths of their queues."""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument, not_found
from ...core.keys.audit import Action
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.providers import Clock
from ...core.records import Rows, WorkerRecord
from ...core.states import WorkerStatus
from ...core.workflow_types.queues import QueueDepth, QueueStanding, TypeLimits, WorkflowTypeRecord
from ...core.workflow_types.versions import best_first, default_version
from ...store.protocol import Store, TypeKey
from ..checks import requests as checks
from ..matching.liveness import Liveness
from ..matching.matcher import Matcher
from .explain.limit_reasons import limited_by
from .keys.audit import Audit
from .namespaces import Namespaces
from .paging import Page, PageAsk, page_cursor, page_of, page_size, with_total
from .shared import Shared

LIMIT_FIELDS = (
    "max_running",
    "max_running_per_key",
    "starts_per_second",
    "starts_per_second_per_key",
    "when_full",
)
_WORKERS_SEEN = 1_000
_TYPES_IN_WORDS = 100  # queues for which limits are explained


class Queues:
    def __init__(
        self, store: Store, *, clock: Clock, matcher: Matcher, namespaces: Namespaces, liveness: Liveness, audit: Audit
    ) -> None:
        self._audit = audit
        self._store = store
        self._clock = clock
        self._matcher = matcher
        self._namespaces = namespaces
        self._liveness = liveness
        self._open_runs: Shared[Mapping[str, int]] = Shared(limits.OPEN_RUNS_SHARED_S)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def list(self, namespace: str, page: PageAsk, *, workflow_type: str = "") -> Page[WorkflowTypeRecord]:
        """By name: types with limits, and types that workers registered. Open runs are counted among the COUNT_CAP
        oldest of the namespace, and the counts are cached for OPEN_RUNS_SHARED_S."""
        checks.name(namespace, "namespace")
        checks.optional_name(workflow_type, "workflow_type")
        bound_to = msgspec.json.encode(("types", namespace, workflow_type)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_workflow_types(
            namespace,
            cursor,
            page_size(page),
            workflow_type=workflow_type,
        )
        records = await self._with_versions(namespace, rows.rows)
        result = page_of(Rows(records, rows.has_more), cursor, bound_to, lambda record: Cursor(0, record.workflow_type))
        what = Counted(rows="workflow_types", namespace=namespace, key=workflow_type)
        return await with_total(result, page, self._store, what)

    async def get(self, namespace: str, workflow_type: str) -> WorkflowTypeRecord:
        """Raises NotFound for a type that no worker has registered and that has no limits."""
        page = await self.list(namespace, PageAsk(1), workflow_type=workflow_type)
        for record in page.rows:
            return record
        raise not_found("workflow type", workflow_type)

    async def _with_versions(
        self, namespace: str, records: Sequence[WorkflowTypeRecord]
    ) -> tuple[WorkflowTypeRecord, ...]:
        names = [record.workflow_type for record in records]
        markers = await self._store.versions_of(namespace, names) if names else ()
        open_runs = await self._open_runs.get(
            namespace, lambda: self._store.open_runs_by_type(namespace, limits.COUNT_CAP)
        )
        with_versions: list[WorkflowTypeRecord] = []
        for record in records:
            mine = [mark for mark in markers if mark.workflow_type == record.workflow_type]
            with_versions.append(
                msgspec.structs.replace(
                    record,
                    versions=best_first(mark.version for mark in mine),
                    default_version=default_version(mine) or "",
                    open_runs=open_runs.get(record.workflow_type, 0),
                )
            )
        return tuple(with_versions)

    async def depths(self, namespace: str, workflow_type: str = "") -> Sequence[QueueStanding]:
        """Of one type, or of all types with waiting runs; a single type is returned even if nothing waits."""
        checks.name(namespace, "namespace")
        checks.optional_name(workflow_type, "workflow_type")
        now = self._clock.now()
        depths = list(await self._store.queue_depths(namespace, workflow_type, cap=limits.COUNT_CAP))
        if workflow_type and not depths:
            depths = [QueueDepth(workflow_type=workflow_type, version="", waiting=0, oldest_since=None)]
        workers = (
            await self._store.list_workers(
                namespace,
                workflow_type=workflow_type or None,
                status=None,
                cursor=None,
                limit=_WORKERS_SEEN,
                alive_since=self._liveness.alive_since(now),
            )
        ).rows
        words: dict[str, str] = {}
        for name in sorted({depth.workflow_type for depth in depths})[:_TYPES_IN_WORDS]:
            pressure = await self._store.type_pressure(namespace, name, "")
            limit = None if pressure is None else limited_by(pressure, name, "", now)
            words[name] = "" if limit is None else limit.sentence
        return [_standing(depth, workers, words.get(depth.workflow_type, "")) for depth in depths]

    # --- changing -----------------------------------------------------------------------------------------------------

    async def update(
        self, namespace: str, workflow_type: str, requested: TypeLimits, fields: Iterable[str]
    ) -> WorkflowTypeRecord:
        """Changes these fields, or (if empty) all limits. Raises InvalidArgument."""
        names = tuple(fields) or LIMIT_FIELDS
        for field in names:
            if field not in (*LIMIT_FIELDS, "paused"):
                known = ", ".join((*LIMIT_FIELDS, "paused"))
                raise InvalidArgument(f"fields names {field!r}. It can name: {known}.", field="fields")
        changes = {field: getattr(requested, field) for field in names}
        return await self._change(namespace, workflow_type, Action.TYPE_LIMITS, changes)

    async def pause(self, namespace: str, workflow_type: str) -> WorkflowTypeRecord:
        """Starts are accepted and wait; running runs continue."""
        return await self._change(namespace, workflow_type, Action.TYPE_PAUSE, {"paused": True})

    async def resume(self, namespace: str, workflow_type: str) -> WorkflowTypeRecord:
        return await self._change(namespace, workflow_type, Action.TYPE_RESUME, {"paused": False})

    async def _change(
        self, namespace: str, workflow_type: str, action: Action, changes: dict[str, object]
    ) -> WorkflowTypeRecord:
        await self._namespaces.check(namespace)
        checks.name(workflow_type, "workflow_type")
        before = await self._store.get_type_limits(namespace, workflow_type) or TypeLimits()
        after = msgspec.structs.replace(before, **changes)
        _check(after)
        entry = self._audit.entry(action, namespace, workflow_type, changes)
        await self._store.put_type_limits(namespace, workflow_type, after, self._clock.now(), audit=entry)
        self._matcher.limits_changed(TypeKey(namespace, workflow_type))
        return await self.get(namespace, workflow_type)


def _check(requested: TypeLimits) -> None:
    for field in ("max_running", "max_running_per_key"):
        value: int | None = getattr(requested, field)
        if value is not None:
            checks.within(value, 1, limits.RUNNING_RUNS_MAX, field)
    for field in ("starts_per_second", "starts_per_second_per_key"):
        rate: float | None = getattr(requested, field)
        if rate is not None and not math.isfinite(rate):
            raise InvalidArgument(f"{field} is not a finite number.", field=field)
        if rate is not None:
            checks.within(rate, limits.STARTS_PER_SECOND_MIN, limits.STARTS_PER_SECOND_MAX, field)
    if requested.when_full not in ("queue", "reject", "cancel-oldest"):
        raise InvalidArgument(
            f"when_full={requested.when_full!r} must be one of queue, reject, cancel-oldest.", field="when_full"
        )
    if requested.when_full != "queue" and requested.max_running is None and requested.max_running_per_key is None:
        raise InvalidArgument(
            f"when_full={requested.when_full} needs max_running or max_running_per_key.",
            field="when_full",
        )


def _standing(depth: QueueDepth, workers: Sequence[WorkerRecord], limit_reason: str) -> QueueStanding:
    serving = [worker for worker in workers if worker.status is WorkerStatus.ONLINE and _serves(worker, depth)]
    free = sum(max(0, worker.max_concurrent - worker.active_count) for worker in serving)
    return QueueStanding(depth=depth, workers=len(serving), free_slots=free, limit_reason=limit_reason)


def _serves(worker: WorkerRecord, depth: QueueDepth) -> bool:
    return any(
        served.workflow_type == depth.workflow_type and depth.version in ("", served.version)
        for served in worker.served
    )

"""Bulk operations on all runs that match a filter: cancel, retry, resume, terminate or delete, in the background, with
progress.

An operation and its current batch are stored: if a server dies, another one repeats the last batch (every action can be
repeated) and counts it once. Several operations take turns.
"""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from ...core.bulk import Batch, BulkAction, BulkOperation, BulkProgress, meant
from ...core.errors import (
    InternalError,
    InvalidArgument,
    KagziError,
    NotFound,
    PreconditionFailed,
    Unavailable,
    not_found,
)
from ...core.ids import is_uuid
from ...core.keys.audit import Action
from ...core.limits import BULK_RUNS
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.providers import Clock, Ids
from ...core.raised.incidents import incident_error
from ...core.records import RunFilter
from ...core.times import US_PER_S, Timestamp
from ...store.protocol import Store
from ..checks import requests as checks
from ..commit.outages import backoff_s
from .control import Control
from .keys.audit import Audit
from .paging import Page, PageAsk, page_cursor, page_of, page_size, place_by, with_total

logger = logging.getLogger("kagzi.engine")

CLAIM_S = 5.0
_AT_ONCE = 2  # runs: leaves connections of the store to others
_DELETED_AT_ONCE = 20
_CALL_TIMEOUT_S = 30.0
_LONGEST_PAUSE_S = 30.0
_EVER: Timestamp = 2**63 - 1
_KEPT_US = 30 * 86_400 * US_PER_S


class Bulk:
    def __init__(self, store: Store, *, clock: Clock, ids: Ids, control: Control, server_id: str, audit: Audit) -> None:
        self._audit = audit
        self._store = store
        self._clock = clock
        self._ids = ids
        self._control = control
        self._server_id = server_id
        self._work = asyncio.Event()

    # --- requests -----------------------------------------------------------------------------------------------------

    async def start(
        self, namespace: str, action: BulkAction, where: RunFilter, *, reason: str = "", request_id: str = ""
    ) -> BulkOperation:
        """Raises InvalidArgument, also for an empty filter."""
        self.check(namespace, where, reason)
        checks.optional_name(request_id, "request_id")
        now = self._clock.now()
        operation = BulkOperation(
            operation_id=(operation_id := self._ids.run_id(now, namespace)),
            namespace=namespace,
            action=action,
            where=meant(action, where),
            reason=reason,
            request_id=request_id or operation_id,
            created_at=now,
        )
        chosen = {name: value for name, value in msgspec.to_builtins(operation.where).items() if value}
        details = {"action": action, "filter": chosen, "reason": reason}
        entry = self._audit.entry(Action.BULK_START, namespace, operation_id, details)
        kept = await self._store.add_bulk(operation, audit=entry)
        self.wanted()
        return kept

    def check(self, namespace: str, where: RunFilter, reason: str = "") -> None:
        """Raises InvalidArgument if `start` would refuse this."""
        checks.name(namespace, "namespace")
        checks.bulk_filter(where)
        checks.reason(reason)

    async def get(self, namespace: str, operation_id: str) -> BulkOperation:
        """Raises NotFound."""
        self._check(namespace, operation_id)
        return _require(await self._store.get_bulk(namespace, operation_id), operation_id)

    async def list(self, namespace: str, page: PageAsk) -> Page[BulkOperation]:
        """Newest first."""
        checks.name(namespace, "namespace")
        bound_to = msgspec.json.encode(("bulk", namespace)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_bulk(namespace, cursor, page_size(page))
        result = page_of(rows, cursor, bound_to, lambda one: Cursor(one.created_at, one.operation_id))
        return await with_total(result, page, self._store, Counted(rows="bulk_operations", namespace=namespace))

    async def stop(self, namespace: str, operation_id: str) -> BulkOperation:
        """Finished changes are not undone. Raises NotFound."""
        self._check(namespace, operation_id)
        entry = self._audit.entry(Action.BULK_STOP, namespace, operation_id)
        stopped = await self._store.stop_bulk(namespace, operation_id, self._clock.now(), audit=entry)
        return _require(stopped, operation_id)

    def _check(self, namespace: str, operation_id: str) -> None:
        checks.name(namespace, "namespace")
        if not operation_id:
            raise InvalidArgument("operation_id is empty. Name the operation.", field="operation_id")
        if not is_uuid(operation_id):
            raise _no_operation(operation_id)

    # --- the work -----------------------------------------------------------------------------------------------------

    def wanted(self) -> None:
        """There may be operations to work on."""
        self._work.set()

    async def run(self) -> None:
        failures = 0
        self._work.set()
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                while await self._some():
                    failures = 0
                failures = 0
            except (KagziError, TimeoutError) as error:  # a problem of one operation must not stop the server
                failures += 1
                logger.warning("an operation on many runs failed and is tried again: %s", error)
                self._work.set()
                await asyncio.sleep(backoff_s(failures, most_s=_LONGEST_PAUSE_S))

    async def _some(self) -> bool:
        """Does one batch of one operation. False: nothing to do here."""
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            now = self._clock.now()
            operation = await self._store.claim_bulk(self._server_id, now, self._until(now))
            if operation is None:
                return False
            batch = operation.batch or await self._plan(operation)
        if batch is None:
            return True
        work = _Work(operation, batch)
        if operation.action == "delete":
            await self._delete(work)
        else:
            await self._change(work)
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            now = self._clock.now()
            await self._store.advance_bulk(work.progress(), self._server_id, now, self._until(now))
        return True

    async def _plan(self, operation: BulkOperation) -> Batch | None:
        """The next runs in list order, among those that existed when the operation was requested."""
        before = min(operation.where.created_before or _EVER, operation.created_at + 1)
        where = msgspec.structs.replace(operation.where, created_before=before)
        rows = await self._store.list_runs(operation.namespace, where, operation.cursor, BULK_RUNS, order=where.order)
        places = map(place_by(where.order), rows.rows)
        batch = Batch(tuple((place.at, place.id) for place in places), last=not rows.has_more)
        until = self._until(self._clock.now())
        planned = await self._store.plan_bulk(operation.operation_id, self._server_id, batch, until)
        return batch if planned else None

    async def _change(self, work: "_Work") -> None:
        ids = iter(work.run_ids)

        async def some() -> None:
            for run_id in ids:
                work.note(run_id, await self._act(work.operation, run_id))
                await self._keep(work)

        for outcome in await asyncio.gather(*(some() for _ in range(_AT_ONCE)), return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _act(self, operation: BulkOperation, run_id: str) -> KagziError | None:
        """None: done. Raises failures of the store: the batch is repeated."""
        namespace = operation.namespace
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                if operation.action == "cancel":
                    await self._control.cancel(namespace, run_id=run_id, reason=operation.reason)
                elif operation.action == "terminate":
                    await self._control.terminate(namespace, run_id=run_id, reason=operation.reason)
                elif operation.action == "resume":
                    status = await self._control.resume(namespace, run_id=run_id)
                    if status.ended:
                        return PreconditionFailed(f"it has {status.value}: only paused runs can be resumed")
                else:
                    request_id = f"bulk/{operation.operation_id}"  # to recognise a repeat
                    await self._control.retry(namespace, run_id=run_id, request_id=request_id)
        except Unavailable:
            raise
        except InternalError:
            number = self._ids.token()
            logger.exception("incident %s: run %s of operation %s", number, run_id, operation.operation_id)
            return incident_error(number)
        except KagziError as error:
            return error
        return None

    async def _delete(self, work: "_Work") -> None:
        ids = work.run_ids
        for start in range(0, len(ids), _DELETED_AT_ONCE):
            some = ids[start : start + _DELETED_AT_ONCE]
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                gone = set(await self._store.delete_runs(work.operation.namespace, some, until=_EVER))
            for run_id in some:
                work.note(run_id, None if run_id in gone else await self._why_not_deleted(work.operation, run_id))
            await self._keep(work)

    async def _why_not_deleted(self, operation: BulkOperation, run_id: str) -> KagziError | None:
        """None: it is already deleted, by this operation before a crash or by another."""
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            record = await self._store.get_run(operation.namespace, run_id=run_id)
        if record is None:
            return None
        if not record.status.ended:
            return InvalidArgument(f"it is {record.status.value}: only runs that have ended can be deleted")
        return InvalidArgument("it is being changed, or its children are still being cancelled: try again")

    async def _keep(self, work: "_Work") -> None:
        now = self._clock.now()
        if now >= work.kept_at + CLAIM_S * US_PER_S / 3:
            work.kept_at = now
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                await self._store.keep_bulk(work.operation.operation_id, self._server_id, self._until(now))

    async def forget(self, now: Timestamp) -> bool:
        """A chore: deletes operations that finished long ago."""
        return await self._store.forget_bulk(now - _KEPT_US, BULK_RUNS)

    def _until(self, now: Timestamp) -> Timestamp:
        return now + int(CLAIM_S * US_PER_S)


class _Work:
    """A batch, and its results so far."""

    def __init__(self, operation: BulkOperation, batch: Batch) -> None:
        self.operation = operation
        self.batch = batch
        self.kept_at: Timestamp = 0
        self._done = 0
        self._failed = 0
        self._last_error = ""

    @property
    def run_ids(self) -> Sequence[str]:
        return [run_id for _, run_id in self.batch.runs]

    def note(self, run_id: str, error: KagziError | None) -> None:
        if error is None:
            self._done += 1
        else:
            self._failed += 1
            self._last_error = f"run {run_id}: {error.message}"

    def progress(self) -> BulkProgress:
        return BulkProgress(
            operation_id=self.operation.operation_id,
            cursor=Cursor(*self.batch.runs[-1]) if self.batch.runs else None,
            done=self._done,
            failed=self._failed,
            last_error=self._last_error,
            finished=self.batch.last,
        )


def _require(operation: BulkOperation | None, operation_id: str) -> BulkOperation:
    if operation is None:
        raise _no_operation(operation_id)
    return operation


def _no_operation(operation_id: str) -> NotFound:
    return not_found("bulk operation", operation_id[:64])

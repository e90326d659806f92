"""`client.bulk`: cancel, retry, resume, terminate or delete all runs that a filter matches."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Unpack

from ....core.bulk import BulkAction
from ....core.duration import Duration
from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.records import RunFilter
from ....v1 import workflow_pb2 as pb
from ....wire.bulk import BULK_ACTION_TO_WIRE
from ....wire.fields import reader
from ....wire.requests import write_filter
from ..backend import Backend
from ..filters import Matching, run_filter
from . import Operations

_FIRST_POLL_S = 0.05
_LAST_POLL_S = 1.0


@exported
@dataclass(frozen=True, slots=True)
class BulkProgress:
    """How far an operation is."""

    action: BulkAction  #: "cancel", "terminate", "retry" or "delete"
    matched: int  #: runs found so far; all of them once it has finished
    done: int  #: runs on which it succeeded
    failed: int  #: runs on which it did not
    last_error: str  #: why it last failed on a run
    finished: bool  #: whether it has ended
    stopped: bool  #: whether it was stopped before its end
    reason: str  #: what was said when it was started
    created_at: datetime  #: when it was started
    finished_at: datetime | None  #: when it ended


_read_progress = reader(pb.BulkOperation, BulkProgress, unread=("operation_id", "filter"))


@exported
class BulkOperation:
    """An operation on many runs. The server goes on with it also when this program ends: `client.bulk.get(id)` finds
    it."""

    def __init__(self, backend: Backend, namespace: str, operation_id: str, last: BulkProgress | None) -> None:
        self._backend = backend
        self._namespace = namespace
        self.id = operation_id  #: its id
        self.last = last
        """Its progress when it was last asked for."""

    def __repr__(self) -> str:
        return f"<BulkOperation {self.id}>"

    async def progress(self) -> BulkProgress:
        """Ask how far it is. Raises NotFound."""
        request = pb.GetBulkOperationRequest(namespace_id=self._namespace, operation_id=self.id)
        return self._learn(await self._backend.call(lambda link: link.workflows.GetBulkOperation, request))

    async def wait(self, timeout: Duration | None = None) -> BulkProgress:
        """Wait until it has finished or was stopped; raises TimeoutError after `timeout`, and the operation goes on."""
        pause_s = _FIRST_POLL_S
        async with self._backend.time_limit(timeout, f"bulk operation {self.id}"):
            while not (progress := await self.progress()).finished:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, _LAST_POLL_S)
        return progress

    async def stop(self) -> BulkProgress:
        """End it where it is; what is done stays done."""
        request = pb.StopBulkOperationRequest(namespace_id=self._namespace, operation_id=self.id)
        return self._learn(await self._backend.call(lambda link: link.workflows.StopBulkOperation, request))

    def _learn(self, message: pb.BulkOperation) -> BulkProgress:
        self.last = _read_progress(message)
        return self.last


class Bulk(Operations):
    """`client.bulk`. Every call returns at once; the server works in the background on the runs that exist at that
    moment.

    The keywords of `matching` say which runs, as in `client.list`; at least one is needed. Without `status`, cancel and
    terminate mean runs that have not ended, retry means failed ones, resume means paused ones.
    """

    async def cancel(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Cancel the runs that are `matching`, for a `reason`. See `Run.cancel`."""
        return await self._start("cancel", reason, matching)

    async def terminate(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Terminate the runs that are `matching`, for a `reason`. See `Run.terminate`."""
        return await self._start("terminate", reason, matching)

    async def retry(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Retry the runs that are `matching`, for a `reason`. See `Run.retry`."""
        return await self._start("retry", reason, matching)

    async def resume(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Resume the runs that are `matching`, for a `reason`. `problem=True` means those that the engine paused. See
        `Run.resume`."""
        return await self._start("resume", reason, matching)

    async def delete(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Delete ended runs that are `matching`, with their history, for a `reason`. Open ones are left alone and count
        as failed."""
        return await self._start("delete", reason, matching)

    def get(self, id: str) -> BulkOperation:
        """A handle to the operation with this `id`. No call is made yet."""
        if not id:
            raise InvalidArgument("id is empty. Give the id of a bulk operation.", field="id")
        return BulkOperation(self._backend, self._namespace, id, None)

    async def list(self, limit: int | None = None) -> AsyncIterator[BulkOperation]:
        """Operations, newest first, at most `limit`; `operation.last` says how far each is."""
        request = pb.ListBulkOperationsRequest(namespace_id=self._namespace)
        async for message in self._backend.rows(
            lambda link: link.workflows.ListBulkOperations, request, lambda page: page.operations, limit
        ):
            yield self._operation(message)

    async def stop(self, id: str) -> BulkProgress:
        """Stop the operation with this `id`. See `BulkOperation.stop`."""
        return await self.get(id).stop()

    async def _start(self, action: BulkAction, reason: str, matching: Matching) -> BulkOperation:
        where = run_filter(self._backend.connection.clock.now(), **matching)
        return await self.start(action, where, reason)

    async def start(self, action: BulkAction, where: RunFilter, reason: str = "") -> BulkOperation:
        """Start an `action` on the runs that a filter `where` matches, for a `reason`."""
        request = pb.StartBulkOperationRequest(
            namespace_id=self._namespace,
            action=BULK_ACTION_TO_WIRE[action],
            filter=write_filter(where),
            reason=reason,
            request_id=self._backend.new_id(),
        )
        response = await self._backend.call(lambda link: link.workflows.StartBulkOperation, request)
        return self._operation(response)

    def _operation(self, message: pb.BulkOperation) -> BulkOperation:
        return BulkOperation(self._backend, self._namespace, message.operation_id, _read_progress(message))

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
    """The progress of a bulk operation."""

    action: BulkAction  #: "cancel", "terminate", "retry", "resume" or "delete"
    matched: int  #: runs found so far; all of them once it has finished
    done: int  #: runs on which it succeeded
    failed: int  #: runs on which it failed
    last_error: str  #: the latest error on a run
    finished: bool  #: whether it has ended
    stopped: bool  #: whether it was stopped before its end
    reason: str  #: the reason given when it was started
    created_at: datetime  #: when it was started
    finished_at: datetime | None  #: when it ended


_read_progress = reader(pb.BulkOperation, BulkProgress, unread=("operation_id", "filter"))


@exported
class BulkOperation:
    """An operation on many runs. The server continues it even after this program ends: find it with
    `client.bulk.get(id)`."""

    def __init__(self, backend: Backend, namespace: str, operation_id: str, last: BulkProgress | None) -> None:
        self._backend = backend
        self._namespace = namespace
        self.id = operation_id  #: its id
        self.last = last
        """Its progress when it was last read."""

    def __repr__(self) -> str:
        return f"<BulkOperation {self.id}>"

    async def progress(self) -> BulkProgress:
        """Read its progress from the server. Raises NotFound."""
        request = pb.GetBulkOperationRequest(namespace_id=self._namespace, operation_id=self.id)
        return self._learn(await self._backend.call(lambda link: link.workflows.GetBulkOperation, request))

    async def wait(self, timeout: Duration | None = None) -> BulkProgress:
        """Wait until it has finished or was stopped. After `timeout` raises TimeoutError; the operation continues."""
        pause_s = _FIRST_POLL_S
        async with self._backend.time_limit(timeout, f"bulk operation {self.id}"):
            while not (progress := await self.progress()).finished:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, _LAST_POLL_S)
        return progress

    async def stop(self) -> BulkProgress:
        """Stop it. Runs that it has already changed stay changed."""
        request = pb.StopBulkOperationRequest(namespace_id=self._namespace, operation_id=self.id)
        return self._learn(await self._backend.call(lambda link: link.workflows.StopBulkOperation, request))

    def _learn(self, message: pb.BulkOperation) -> BulkProgress:
        self.last = _read_progress(message)
        return self.last


class Bulk(Operations):
    """`client.bulk`. Every call returns at once; the server processes the runs that exist at that time in the
    background.

    The keywords of `matching` select the runs, as in `client.list`; at least one is required. Without `status`, cancel
    and terminate select open runs, retry failed ones, and resume paused ones.
    """

    async def cancel(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Cancel all runs `matching` the conditions, for a `reason`. See `Run.cancel`."""
        return await self._start("cancel", reason, matching)

    async def terminate(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Terminate all runs `matching` the conditions, for a `reason`. See `Run.terminate`."""
        return await self._start("terminate", reason, matching)

    async def retry(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Retry all runs `matching` the conditions, for a `reason`. See `Run.retry`."""
        return await self._start("retry", reason, matching)

    async def resume(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Resume all runs `matching` the conditions, for a `reason`. `problem=True` selects those that Kagzi paused.
        See `Run.resume`."""
        return await self._start("resume", reason, matching)

    async def delete(self, *, reason: str = "", **matching: Unpack[Matching]) -> BulkOperation:
        """Delete the ended runs `matching` the conditions, with their history, for a `reason`. Open runs are not
        deleted and count as failed."""
        return await self._start("delete", reason, matching)

    def get(self, id: str) -> BulkOperation:
        """A handle to the operation with this `id`. Makes no call yet."""
        if not id:
            raise InvalidArgument("id is empty. Give the id of a bulk operation.", field="id")
        return BulkOperation(self._backend, self._namespace, id, None)

    async def list(self, limit: int | None = None) -> AsyncIterator[BulkOperation]:
        """Operations, newest first, at most `limit`; `operation.last` is the progress of each."""
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
        """Start an `action` on the runs that the filter `where` selects, for a `reason`."""
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

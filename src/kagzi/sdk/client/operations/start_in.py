"""Starts that are written in the user's own transaction and take effect when it commits."""

from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import msgspec

from ....core.checks import starts
from ....v1 import workflow_pb2 as pb
from ....wire.requests import write_start
from ...tracing.tracing import find_tracing
from ...transactions import outbox
from ...workflow.workflow import Workflow
from ..start import ABSENT, StartKeywords, StartOptions, checked_workflow_name, refuse_oversized, start_request
from . import Operations

if TYPE_CHECKING:  # needs OpenTelemetry
    from ...tracing.spans import StartSpan

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation


class StartIn(Operations):
    """Start a run if and only if your transaction commits: `await client.start_in(connection, workflow, input)`.

    The start is a row of the table `kagzi_outbox` in your database, written in your transaction. A server that drains
    the table (`kagzi server --outbox URL`) starts the run once and deletes the row. No server is called before that.
    Returns the workflow_id: `client.get(id, workflow)` is a handle to the run, which does not exist before the
    transaction commits and a server has read the row.

    Args:
        connection: A connection to PostgreSQL, of asyncpg, psycopg 3 or SQLAlchemy, in a transaction.
        workflow: The workflow, or its name.
        input: The input of the workflow.
        options: As in `start`: see [StartKeywords](#startkeywords). Without an `id`, the run gets a new one. A `delay`
            counts from this call.

    Raises InvalidArgument and ResourceExhausted as `start` does, before anything is written; PreconditionFailed if no
    transaction is open. A start that the server refuses stays in the table with the reason: `kagzi outbox list`.
    """

    @overload
    async def __call__(
        self, connection: Any, workflow: Workflow[I, Any], input: I, **options: Unpack[StartKeywords]
    ) -> str: ...
    @overload
    async def __call__(
        self, connection: Any, workflow: Workflow[None, Any], **options: Unpack[StartKeywords]
    ) -> str: ...
    @overload
    async def __call__(
        self, connection: Any, workflow: str, input: Any = None, **options: Unpack[StartKeywords]
    ) -> str: ...
    async def __call__(
        self, connection: Any, workflow: Workflow[Any, Any] | str, input: Any = ABSENT, **options: Any
    ) -> str:
        """Write a start into the outbox. Returns the workflow_id."""
        start = StartOptions(workflow=workflow, input=input, **options)
        if start.id is None:
            start = msgspec.structs.replace(start, id=self._backend.new_id())
        tracing = find_tracing()
        span = None
        if tracing is not None:
            span = tracing.start(
                start.namespace or self._namespace, checked_workflow_name(start.workflow), start.context
            )
        write = self._write(connection, start, span)
        response = await (write if span is None else span.of(write))
        return response.workflow_id

    async def _write(
        self, connection: Any, options: StartOptions, span: "StartSpan | None"
    ) -> pb.StartWorkflowResponse:
        link = self._backend.connection
        request = start_request(options, namespace=self._namespace, request_id=self._backend.new_id(), span=span)
        refuse_oversized(request, link.max_payload_bytes)
        starts.start(request, link.clock.now(), link.max_payload_bytes)
        message = write_start(request)
        if link.codec is not None:
            link.codec.encode(message)
        await outbox.write_start(connection, message)
        return pb.StartWorkflowResponse(workflow_id=request.workflow_id)

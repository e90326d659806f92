"""Starts as rows of an outbox table, written in the user's own transaction. A server drains the table."""

from typing import Any

from ...core.errors import InvalidArgument, PreconditionFailed
from ...v1 import workflow_pb2 as pb
from .connections import Connection, connection_of
from .statements import statements
from .tables import OUTBOX, create

CALL = "client.start_in(connection, ...)"


async def write_start(connection: Any, request: pb.StartWorkflowRequest) -> None:
    """Writes one row in the open transaction. Raises InvalidArgument for anything but a connection to PostgreSQL,
    PreconditionFailed without a transaction, NonRetryable if the table is missing and may not be created."""
    opened = connection_of(connection, CALL)
    if opened.dialect != "postgresql":
        raise InvalidArgument(
            f"{CALL}: this connection is to {opened.dialect}. An outbox is in PostgreSQL. Elsewhere, commit first, and "
            "then call client.start(..., id=...), which you can safely repeat.",
            field="connection",
        )
    _require_transaction(opened)
    if (await opened.fetch(statements()["find_outbox"], {}))[0][0] is None:
        await create(opened, OUTBOX)
    await opened.fetch(
        statements()["write_start"],
        {
            "namespace": request.namespace_id,
            "workflow_type": request.workflow_type,
            "workflow_id": request.workflow_id,
            "request_id": request.request_id,
            "request": request.SerializeToString(),
        },
    )


def _require_transaction(connection: Connection) -> None:
    if connection.autocommits() and connection.state() == "none":
        raise PreconditionFailed(
            f"{CALL}: {connection.what} is not in a transaction, so the start would be committed at once, whatever "
            f"becomes of your rows. Call it within `{connection.explicit_block()}`."
        )

"""The outbox of a server: a table in a user database, whose rows become runs."""

from google.protobuf.message import DecodeError

from ..core.errors import InvalidArgument
from ..core.run.commands import StartRequest
from ..engine import Engine
from ..engine.background.outbox_drain import OutboxDrain
from ..v1 import workflow_pb2 as pb
from ..wire.runs import read_start
from .config import ServerConfig


def drain_outbox(engine: Engine, config: ServerConfig) -> None:
    """Drains the outbox, if one is configured, until the engine stops. Raises CannotStart for one that would bypass the
    API keys."""
    if not config.outbox:
        return
    config.refuse_open_outbox()
    from ..store.postgres.outbox.outbox import PostgresOutbox  # noqa: PLC0415  most servers have none

    drain = OutboxDrain(
        PostgresOutbox(config.outbox),
        engine.runs,
        engine.measurements,
        read=read_request,
        namespaces=frozenset(config.outbox_namespaces),
        interval_s=config.settings.poll_interval_ms / 1_000,
    )
    engine.supervisor.watch("outbox", drain.run)
    engine.supervisor.watch("outbox notifications", drain.listen)


def read_request(data: bytes) -> StartRequest:
    """Raises InvalidArgument."""
    try:
        message = pb.StartWorkflowRequest.FromString(data)
    except DecodeError as error:
        raise InvalidArgument(
            "the column request is not a kagzi.v1.StartWorkflowRequest. Write rows with client.start_in().",
            field="request",
        ) from error
    return read_start(message)

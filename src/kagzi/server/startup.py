"""Errors that keep a server from starting, each with a remedy and an exit code."""

from typing import TYPE_CHECKING

from ..core.error_details import ErrorCode
from ..core.errors import KagziError
from ..core.text.commands import quoted

if TYPE_CHECKING:  # commands that start no server use this module, too
    from ..store.protocol import Migrator

EXIT_FAILED = 1
EXIT_CANNOT_CONNECT = 4
EXIT_REFUSED = 5


def ready_line(grpc_address: str, http_url: str, store_url: str, processes: int = 1, *, websocket_url: str = "") -> str:
    """For people, and for programs that start the server: `key=value` pairs, separated by spaces."""
    parts = [
        f"grpc={grpc_address}",
        f"http={http_url}" if http_url else "",
        f"store={store_url}",
        f"websocket={websocket_url}" if websocket_url else "",
        f"processes={processes}" if processes > 1 else "",
    ]
    return " ".join(("kagzi server ready", *filter(None, parts)))


class CannotStart(KagziError):
    """The server refuses to start: port or file in use, incompatible schema, reachable without protection."""

    code = ErrorCode.PRECONDITION_FAILED
    exit_code = EXIT_REFUSED


class CannotConnect(CannotStart):
    """The database cannot be reached."""

    code = ErrorCode.UNAVAILABLE
    exit_code = EXIT_CANNOT_CONNECT


async def migrate(migrator: "Migrator | None", store_url: str, *, refuse: bool) -> int:
    """Migrates the database, or refuses to. Returns the version of its schema, 0 for one created with the store.
    Raises CannotStart, Unavailable, SchemaMismatch."""
    if migrator is None:
        return 0
    status = await migrator.status()
    if not status.pending:
        return status.current
    if refuse:
        raise CannotStart(
            f"the database has schema version {status.current}, this server needs {status.latest}. "
            f"Run `kagzi db migrate --db {quoted(store_url)}`, or start without --no-migrate."
        )
    return (await migrator.migrate()).current

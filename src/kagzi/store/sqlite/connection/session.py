"""Sessions of SQLite: run the verbs that both stores share in the thread that owns the connection.

Nothing here waits, so a verb runs to its end without suspending; its caller begins and commits the transaction.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from ....core.errors import InternalError
from ...rows import write_json
from ...sessions import Verb
from ..write.fast_path import Writer
from .connection import Database, Record

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class Session:
    """Implements `store.sessions.Session`. Rows and lists are passed as JSON."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def read(self, name: str, /, **values: object) -> list[Record]:
        return self.database.records(name, _bound(values))

    async def write(self, name: str, /, **values: object) -> list[Record]:
        return await self.read(name, **values)

    async def page(self, name: str, limit: int, /, **values: object) -> tuple[Sequence[Record], bool]:
        return self.database.page(name, _bound(values) | {"limit": limit + 1}, limit)

    def transaction(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class WriterSession(Session):
    """In the writer's thread: drops what the writer has cached of a row when the row changes."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer.database)
        self.writer = writer

    async def read(self, name: str, /, **values: object) -> list[Record]:
        rows = await super().read(name, **values)
        if (forget := _FORGET.get(name)) is not None:
            forget(self.writer)
        return rows


_FORGET: Mapping[str, Callable[[Writer], None]] = {
    "put_namespace": lambda writer: writer.namespaces.forget_all(),
    "note_stored_bytes": lambda writer: writer.namespaces.forget_all(),
    "remove_namespace": Writer.forget_all,
    "remove_workflow_types": lambda writer: writer.types.forget_all(),
    "put_type_limits": lambda writer: writer.types.forget_all(),
}


def _bound(values: dict[str, object]) -> dict[str, object]:
    return {
        name: write_json(cast("object", value)) if isinstance(value, list) else value for name, value in values.items()
    }


def on_writer(function: Callable[Concatenate[Writer, Arguments], Result]) -> Verb[Arguments, Result]:
    """Turns a function of this store into a verb that writes."""

    async def act(session: WriterSession, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return function(session.writer, *args, **kwargs)

    return act


def on_database(function: Callable[Concatenate[Database, Arguments], Result]) -> Verb[Arguments, Result]:
    """Like `on_writer`, for a function that reads."""

    async def act(session: Session, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return function(session.database, *args, **kwargs)

    return act


def run_to_end(verb: Coroutine[Any, Any, Result]) -> Result:
    """The result of a verb on one of these sessions."""
    try:
        verb.send(None)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    verb.close()
    raise InternalError("a verb of SQLite waited for something")

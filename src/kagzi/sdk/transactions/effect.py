"""Effects of steps, recorded in the user's own transaction: key and result beside the user's rows."""

import base64
from enum import Enum
from types import TracebackType
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument, KagziError, NonRetryable, PreconditionFailed, Unavailable
from ...core.public import exported
from ...core.records import Payload
from ...v1 import common_pb2 as common
from ..transport.payload_codec import MessageCodec
from ..workflow.codec import ANY, codec_for, read_payload, write_payload
from ..workflow.current import StepInfo, place
from .connections import Connection, connection_of, is_missing_table, run_now
from .statements import statements
from .tables import EFFECTS, create

T = TypeVar("T")

_ended: "WeakKeyDictionary[StepInfo, set[str]]" = WeakKeyDictionary()
"""The names of the effects whose blocks have ended, by attempt."""


class _State(Enum):
    NEW = "is not open"
    OPEN = "is open"
    ENDED = "has ended"


@exported
def effect(connection: Any, name: str = "") -> "Effect":
    """Do work in your own database exactly once: `async with kagzi.effect(connection) as effect:`, in the body of a
    step. The key of the step and the result are written beside your rows, in your transaction, so that a repeated
    attempt reads the result instead of repeating the work.

    Args:
        connection: Of asyncpg, psycopg 3 or SQLAlchemy (a connection or a session, to PostgreSQL or SQLite). Use `with`
            for sync connections. If no transaction is open, the block is one. Inside a transaction, the block is a
            savepoint, which takes effect with your commit.
        name: Required if a step has several effects: each has its own.

    Raises PreconditionFailed outside of a step, InvalidArgument for an invalid connection or name.
    """
    return Effect(connection, name, _step())


@exported
class Effect:
    """An effect of a step, made by `kagzi.effect(connection)`. If `done` is true, `result()` is what an earlier attempt
    recorded. Otherwise the block does the work and calls `record()`. A block that does neither is rolled back."""

    def __init__(self, connection: Any, name: str, step: StepInfo) -> None:
        self._connection: Connection = connection_of(connection, "kagzi.effect(connection)")
        self._step = step
        self._name = _checked_name(name)
        self._values = {
            "namespace": "" if step.run is None else step.run.task.namespace_id,
            "run_id": step.run_id,
            "step_id": step.step_id,
            "name": name,
        }
        self._state = _State.NEW
        self._transaction: Any = None
        self._earlier: Payload | None = None
        self._is_checked = False
        self._result: Payload | None = None

    def __repr__(self) -> str:
        return f"<Effect {self.key!r}, which {self._state.value}>"

    @property
    def key(self) -> str:
        """The idempotency key of the step, with the name of the effect, if it has one."""
        return f"{self._step.idempotency_key}:{self._name}" if self._name else self._step.idempotency_key

    @property
    def done(self) -> bool:
        """Whether an earlier attempt has committed this effect: then do nothing, and return `result()`."""
        self._require_open("done")
        self._is_checked = True
        return self._earlier is not None

    @overload
    def result(self) -> Any: ...
    @overload
    def result(self, type: type[T]) -> T: ...
    def result(self, type: Any = Any) -> Any:
        """The result that the earlier attempt recorded, decoded as `type`. Raises NonRetryable if there was none."""
        self._require_open("result()")
        if self._earlier is None:
            raise NonRetryable(
                f"{self._what} has no result yet: no earlier attempt has committed it. Ask effect.done first."
            )
        self._is_checked = True
        return read_payload(codec_for(type), self._earlier, what=f"result of {self._what}")

    def record(self, result: Any = None) -> None:
        """The work is done, with this `result`, any value with a JSON form: written when the block ends. Raises
        NonRetryable if the effect was done before, or is recorded twice."""
        self._require_open("record()")
        if self._earlier is not None:
            raise NonRetryable(
                f"{self._what} was done by an earlier attempt, and its work was about to be done again; it is rolled "
                "back. Begin the block with `if effect.done: return effect.result(...)`."
            )
        if self._result is not None:
            raise NonRetryable(f"{self._what} is recorded twice. Give each effect of a step a block and a name.")
        self._result = self._encoded(write_payload(ANY, result, what=f"result of {self._what}"))

    # --- the block ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> "Effect":
        self._require_new(is_async=True)
        await self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._exit(error)

    def __enter__(self) -> "Effect":
        self._require_new(is_async=False)
        run_now(self._enter())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run_now(self._exit(error))

    async def _enter(self) -> None:
        self._refuse_transaction()
        try:
            await self._open()
        except BaseException as error:
            if not is_missing_table(error, EFFECTS):
                raise
            await create(self._connection, EFFECTS)
            await self._open()
        self._state = _State.OPEN

    async def _open(self) -> None:
        transaction = await self._connection.begin()
        try:
            self._earlier = await self._claim()
        except BaseException as error:
            await self._connection.end(transaction, error)
            raise
        self._transaction = transaction

    async def _claim(self) -> Payload | None:
        """The result of an earlier attempt. None: this attempt is the first, and all others wait for it."""
        attempt = {"attempt": self._step.attempt}
        if await self._connection.fetch(statements()["claim_effect"], {**self._values, **attempt}):
            return None
        rows = await self._connection.fetch(statements()["read_effect"], self._values)
        if not rows:
            raise Unavailable(f"{self._what} was deleted from {EFFECTS} at this moment. The attempt is repeated.")
        if self._name in _ended.get(self._step, ()):
            raise NonRetryable(
                f"{self._what} was ended by this very attempt. A second effect of a step needs a name of its own: "
                'kagzi.effect(connection, "..."), the same in each attempt.'
            )
        result, encoding = rows[0]
        if result is None:
            raise NonRetryable(
                f"{self._what} was committed without a result: code within the block has ended the transaction "
                f"itself. Take that out of the block. Then see whether the work was done, and set the result of this "
                f"row of {EFFECTS} (to JSON such as null) if it was, or delete the row."
            )
        return self._decoded(result, encoding)

    async def _exit(self, error: BaseException | None) -> None:
        self._state = _State.ENDED
        transaction, self._transaction = self._transaction, None
        problem = self._problem() if error is None else None
        try:
            if error is None and problem is None and self._result is not None:
                problem = await self._write(self._result)
        except BaseException as failure:
            await self._connection.end(transaction, failure)
            raise
        await self._connection.end(transaction, error or problem)
        if problem is not None:
            raise problem
        if error is None:
            _ended.setdefault(self._step, set()).add(self._name)

    def _problem(self) -> KagziError | None:
        """Why a block that raised nothing must not be committed."""
        if self._earlier is not None and not self._is_checked:
            return NonRetryable(
                f"{self._what} was done by an earlier attempt, and the block did not ask; it is rolled back. Begin it "
                "with `if effect.done: return effect.result(...)`."
            )
        if self._earlier is None and self._result is None:
            return NonRetryable(
                f"{self._what} has ended without effect.record(result); it is rolled back. Call effect.record() when "
                "the work is done, also if there is no result."
            )
        return None

    async def _write(self, result: Payload) -> KagziError | None:
        encoding = msgspec.json.encode(dict(result.metadata)).decode() if result.metadata else None
        text = (result.data if encoding is None else base64.b64encode(result.data)).decode()
        values = {**self._values, "result": text, "encoding": encoding}
        if await self._connection.fetch(statements()["record_effect"], values):
            return None
        return NonRetryable(
            f"{self._what} lost its row of {EFFECTS} before it was recorded: code within the block has ended the "
            "transaction or a savepoint around it. Take that out of the block."
        )

    # --- values -------------------------------------------------------------------------------------------------------

    @property
    def _codec(self) -> MessageCodec | None:
        """The codec of the worker."""
        run = self._step.run
        return None if run is None or run.services.step_logs is None else run.services.step_logs.codec

    def _encoded(self, payload: Payload) -> Payload:
        if self._codec is None:
            return payload
        message = common.Payload(data=payload.data)
        self._codec.encode(message)
        return Payload(message.data, dict(message.metadata))

    def _decoded(self, result: str, encoding: str | None) -> Payload:
        if encoding is None:
            return Payload(result.encode())
        message = common.Payload(
            data=base64.b64decode(result), metadata=msgspec.json.decode(encoding, type=dict[str, str])
        )
        if self._codec is not None:
            self._codec.decode(message)
        return Payload(message.data, dict(message.metadata))

    # --- misuse -------------------------------------------------------------------------------------------------------

    @property
    def _what(self) -> str:
        name = f" {self._name!r}" if self._name else ""
        return f"the effect{name} of step {self._step.step_id!r}"

    def _require_new(self, *, is_async: bool) -> None:
        if is_async != self._connection.is_async:
            written = "async with" if self._connection.is_async else "with"
            raise NonRetryable(f"{self._connection.what} is used with `{written} kagzi.effect(connection) as effect:`.")
        if self._state is not _State.NEW:
            raise NonRetryable(f"{self._what} {self._state.value}. Call kagzi.effect(connection) for each block.")

    def _require_open(self, member: str) -> None:
        if self._state is not _State.OPEN:
            written = "async with" if self._connection.is_async else "with"
            raise NonRetryable(
                f"effect.{member}: {self._what} {self._state.value}. It works within the block "
                f"`{written} kagzi.effect(connection) as effect:`."
            )

    def _refuse_transaction(self) -> None:
        """Raises NonRetryable for a transaction that may never be committed: the step would be recorded, but not the
        effect."""
        state, block = self._connection.state(), self._connection.explicit_block()
        if state == "implicit":
            raise NonRetryable(
                f"kagzi.effect(connection): {self._connection.what} is in a transaction that an earlier statement "
                f"began implicitly, and that the effect would not commit. Commit it first, or open it as a block: "
                f"`{block}` around everything."
            )
        if state == "block" and self._connection.dialect == "sqlite":
            raise NonRetryable(
                "kagzi.effect(session): a transaction is open, and SQLite through SQLAlchemy has no savepoints that "
                "can be relied on. Open the effect on a session without a transaction: it commits when it ends."
            )


def _step() -> StepInfo:
    here = place.get()
    if isinstance(here, StepInfo):
        return here
    where = "workflow code" if here is not None else "code that no step is running"
    raise PreconditionFailed(
        f"kagzi.effect() works only in the body of a step, whose key it uses; this is {where}. Move the block into a "
        "function with @step and await that in the workflow. To start a run in a transaction, use client.start_in()."
    )


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or len(name.encode("utf-8", "replace")) > limits.NAME_BYTES:
        raise InvalidArgument(
            f"name={name!r} of an effect must be a string of up to {limits.NAME_BYTES} bytes.", field="name"
        )
    return name

"""Starts runs in the user's own transaction, without await, on the thread of the connection."""

from typing import Any, TypeVar, Unpack, cast, overload

from ..core.errors import InvalidArgument
from ..sdk.client.operations.start_in import StartIn as AsyncStartIn
from ..sdk.client.start import ABSENT, StartKeywords
from ..sdk.transactions.connections import connection_of, run_now
from ..sdk.transactions.outbox import CALL
from ..sdk.workflow.workflow import Workflow

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation


class StartIn:
    """`client.start_in(connection, workflow, input)`, like `kagzi.Kagzi.start_in`; `connection` is not async."""

    def __init__(self, start_in: AsyncStartIn) -> None:
        self._start_in = start_in

    @overload
    def __call__(
        self, connection: Any, workflow: Workflow[I, Any], input: I, **options: Unpack[StartKeywords]
    ) -> str: ...
    @overload
    def __call__(self, connection: Any, workflow: Workflow[None, Any], **options: Unpack[StartKeywords]) -> str: ...
    @overload
    def __call__(self, connection: Any, workflow: str, input: Any = None, **options: Unpack[StartKeywords]) -> str: ...
    def __call__(self, connection: Any, workflow: Workflow[Any, Any] | str, input: Any = ABSENT, **options: Any) -> str:
        """Write a start into the outbox. Returns the workflow_id."""
        opened = connection_of(connection, CALL)
        if opened.is_async:
            raise InvalidArgument(
                f"{CALL}: {opened.what} is used with await, and this client is not. Use kagzi.Kagzi with it.",
                field="connection",
            )
        workflow_id: str = run_now(cast("Any", self._start_in)(connection, workflow, input, **options))
        return workflow_id

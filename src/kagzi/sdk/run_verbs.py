"""What a client says about runs that are there: ask, list, count, and change them by id."""

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast, overload

from ..core.duration import Duration
from ..core.errors import InvalidArgument
from ..core.states import RunStatus
from ..system import SystemIds
from .calls import RunCalls
from .codec import ANY
from .connection import Connection
from .explanation import Explanation
from .filters import run_filter
from .run import Run
from .signals import Signal
from .waits import Waits
from .workflow import Workflow

O = TypeVar("O")  # noqa: E741  output, as in the documentation
T = TypeVar("T")


class RunVerbs:
    """The part of a client that needs no workflow to start: only ids and filters."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._ids = SystemIds()
        self._waits = Waits(connection)
        self._calls = RunCalls(connection, self._waits)

    # --- asking --------------------------------------------------------------------------------------------------------

    @overload
    def get(self, id: str) -> Run[Any]: ...
    @overload
    def get(self, id: str, workflow: Workflow[Any, O]) -> Run[O]: ...
    def get(self, id: str, workflow: Workflow[Any, Any] | None = None) -> Run[Any]:
        """A handle to the run with this id, or to the latest with this workflow_id. No call is made yet."""
        if not (isinstance(cast("object", id), str) and id):
            raise InvalidArgument(f"id={id!r} must be a run id or a workflow id.", field="id")
        return Run(
            self._calls,
            self._namespace,
            output=ANY if workflow is None else workflow.output_codec,
            draw_id=self._ids.token,
            asked_for=id,
        )

    async def list(
        self,
        *,
        status: RunStatus | str | Iterable[RunStatus | str] = (),
        workflow: Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str] = (),
        labels: Mapping[str, str] | None = None,
        since: datetime | Duration | None = None,
        until: datetime | Duration | None = None,
        parent: Run[Any] | str | None = None,
        version: int | str | None = None,
        schedule: str | None = None,
        concurrency_key: str | None = None,
        problem: bool | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Run[Any]]:
        """Runs, newest first: those that match everything given. `since` and `until` are moments, or how long ago ("2h");
        `parent` is a run (or its run id) whose children are meant; `schedule` is the id of the one that started them; `problem`
        asks for those the engine paused, or for all others."""
        where = run_filter(
            now=self._connection.clock.now(),
            status=status,
            workflow=workflow,
            labels=labels,
            since=since,
            until=until,
            parent=parent,
            version=version,
            schedule=schedule,
            concurrency_key=concurrency_key,
            problem=problem,
        )
        async for record in self._calls.list(self._namespace, where, limit):
            yield Run(
                self._calls,
                self._namespace,
                output=ANY,
                draw_id=self._ids.token,
                run_id=record.run.run_id,
                workflow_id=record.workflow_id,
                last_status=record.status,
            )

    async def count(
        self,
        *,
        status: RunStatus | str | Iterable[RunStatus | str] = (),
        workflow: Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str] = (),
        labels: Mapping[str, str] | None = None,
        since: datetime | Duration | None = None,
        until: datetime | Duration | None = None,
        parent: Run[Any] | str | None = None,
        version: int | str | None = None,
        schedule: str | None = None,
        concurrency_key: str | None = None,
        problem: bool | None = None,
    ) -> int:
        """How many runs `list` would answer. A server stops counting at its cap (10,000)."""
        where = run_filter(
            now=self._connection.clock.now(),
            status=status,
            workflow=workflow,
            labels=labels,
            since=since,
            until=until,
            parent=parent,
            version=version,
            schedule=schedule,
            concurrency_key=concurrency_key,
            problem=problem,
        )
        return await self._calls.count(self._namespace, where)

    async def explain(self, id: str) -> Explanation:
        """Why the run is where it is, in words: `print(await client.explain(id))`."""
        return await self.get(id).explain()

    # --- changing: `id` is a run id, or a workflow_id and means its latest run --------------------------------------------

    @overload
    async def signal(self, id: str, signal: Signal[T], value: T, /, *, replace: bool = False) -> None: ...
    @overload
    async def signal(self, id: str, signal: str, value: Any = None, /, *, replace: bool = False) -> None: ...
    async def signal(self, id: str, signal: Signal[Any] | str, value: Any = None, /, *, replace: bool = False) -> None:
        """See Run.signal."""
        await self.get(id).signal(cast("Any", signal), value, replace=replace)

    async def drop_signal(self, id: str, signal: Signal[Any] | str, /) -> None:
        """See Run.drop_signal."""
        await self.get(id).drop_signal(signal)

    async def cancel(self, id: str, reason: str = "") -> None:
        """See Run.cancel."""
        await self.get(id).cancel(reason)

    async def terminate(self, id: str, reason: str = "") -> None:
        """See Run.terminate."""
        await self.get(id).terminate(reason)

    async def pause(self, id: str, reason: str = "") -> None:
        """See Run.pause."""
        await self.get(id).pause(reason)

    async def resume(self, id: str) -> None:
        """See Run.resume."""
        await self.get(id).resume()

    async def retry(self, id: str, *, from_step: str = "") -> None:
        """See Run.retry."""
        await self.get(id).retry(from_step=from_step)

    async def fork(
        self,
        id: str,
        *,
        from_step: str = "",
        outputs: Mapping[str, Any] | None = None,
        version: int | str | None = None,
        workflow_id: str | None = None,
    ) -> Run[Any]:
        """See Run.fork. `workflow_id` is that of the new run."""
        return await self.get(id).fork(from_step=from_step, outputs=outputs, version=version, id=workflow_id)

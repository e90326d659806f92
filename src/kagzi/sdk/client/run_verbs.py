"""What a client says about runs that are there: ask, list, count, and change them by id."""

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast, overload

from ...core.duration import Duration
from ...core.errors import InvalidArgument
from ...core.states import RunStatus
from ...system import SystemIds
from ..transport.connection import Connection
from ..workflow.codec import ANY
from ..workflow.signals import Signal
from ..workflow.workflow import Workflow
from .calls import RunCalls
from .cancel import Cancel
from .explanation import Explanation
from .filters import run_filter
from .run import Run, RunQuery
from .waits import Waits

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
    def get(self, id: str, *, namespace: str | None = None) -> RunQuery[Any]: ...
    @overload
    def get(self, id: str, workflow: Workflow[Any, O], *, namespace: str | None = None) -> Run[O]: ...
    def get(self, id: str, workflow: Workflow[Any, Any] | None = None, *, namespace: str | None = None) -> Run[Any]:
        """A handle to a run. No call is made until you ask it something, or await it for a `RunInfo`.

        Args:
            id: A run id; or a workflow_id, which means the latest run with it.
            workflow: The workflow, so that `result()` is typed.
            namespace: Where to look. Default: the client's own. `get(id).namespace("production")` means the same.
        """
        if not (isinstance(cast("object", id), str) and id):
            raise InvalidArgument(f"id={id!r} must be a run id or a workflow id.", field="id")
        return RunQuery(
            self._calls,
            namespace or self._namespace,
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
        """Runs that match everything given, newest first: `async for run in client.list(status="failed"):`.

        Args:
            status: One state or several: `"failed"`, `RunStatus.FAILED`, `["failed", "cancelled"]`. Empty: any.
            workflow: One workflow or several, or their names. Empty: any.
            labels: Labels that a run must all have.
            since: Created at or after this moment, or this long ago (`"2h"`).
            until: Created before this moment, or this long ago.
            parent: A run, or its run id, whose children are meant.
            version: Runs pinned to this version of their workflow.
            schedule: The id of the schedule that started them.
            concurrency_key: Runs that were started with this key.
            problem: True: only runs that the engine has paused because of a problem; False: all others.
            limit: Return at most this many. Default: all.
        """
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
        """How many runs `list` would return. A server stops counting at 10,000.

        Args:
            status: One state or several: `"failed"`, `RunStatus.FAILED`, `["failed", "cancelled"]`. Empty: any.
            workflow: One workflow or several, or their names. Empty: any.
            labels: Labels that a run must all have.
            since: Created at or after this moment, or this long ago (`"2h"`).
            until: Created before this moment, or this long ago.
            parent: A run, or its run id, whose children are meant.
            version: Runs pinned to this version of their workflow.
            schedule: The id of the schedule that started them.
            concurrency_key: Runs that were started with this key.
            problem: True: only runs that the engine has paused because of a problem; False: all others.
        """
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
        """Why the run is where it is, in words: `print(await client.explain(id))`.

        Args:
            id: A run id, or a workflow_id for its latest run.
        """
        return await self.get(id).explain()

    # --- changing: `id` is a run id, or a workflow_id and means its latest run --------------------------------------------

    @overload
    async def signal(self, id: str, signal: Signal[T], value: T, /, *, replace: bool = False) -> None: ...
    @overload
    async def signal(self, id: str, signal: str, value: Any = None, /, *, replace: bool = False) -> None: ...
    async def signal(self, id: str, signal: Signal[Any] | str, value: Any = None, /, *, replace: bool = False) -> None:
        """Send a run a message. See `Run.signal`.

        Args:
            id: A run id, or a workflow_id for the run that has not ended.
            signal: The signal, or its name.
            value: What is sent.
            replace: Replace a value that no code has received.
        """
        await self.get(id).signal(cast("Any", signal), value, replace=replace)

    async def drop_signal(self, id: str, signal: Signal[Any] | str, /) -> None:
        """Drop a signal that no code has received. See `Run.drop_signal`.

        Args:
            id: A run id, or a workflow_id.
            signal: The signal, or its name.
        """
        await self.get(id).drop_signal(signal)

    def cancel(self, id: str, reason: str = "", *, namespace: str | None = None) -> Cancel:
        """Ask a run to stop and clean up. See `Run.cancel`. Await it, or say first where: `await client.cancel(id).namespace("production")`.

        Args:
            id: A run id, or a workflow_id for its latest run.
            reason: Shown with the run.
            namespace: Where the run is. Default: the client's own.
        """
        return Cancel(self._cancel, id, reason, namespace)

    async def _cancel(self, id: str, reason: str, namespace: str | None) -> None:
        await self.get(id, namespace=namespace).cancel(reason)

    async def terminate(self, id: str, reason: str = "") -> None:
        """End a run now, without cleanup. See `Run.terminate`.

        Args:
            id: A run id, or a workflow_id for its latest run.
            reason: Shown with the run.
        """
        await self.get(id).terminate(reason)

    async def pause(self, id: str, reason: str = "") -> None:
        """Let a run begin no more steps. See `Run.pause`.

        Args:
            id: A run id, or a workflow_id for its latest run.
            reason: Shown with the run.
        """
        await self.get(id).pause(reason)

    async def resume(self, id: str) -> None:
        """Let a paused run go on. See `Run.resume`.

        Args:
            id: A run id, or a workflow_id for its latest run.
        """
        await self.get(id).resume()

    async def retry(self, id: str, *, from_step: str = "") -> None:
        """Reopen a failed run. See `Run.retry`.

        Args:
            id: A run id, or a workflow_id for its latest run.
            from_step: The step id to go on from. Default: the step that failed the run.
        """
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
        """Start a new run from the history of another one. See `Run.fork`.

        Args:
            id: A run id, or a workflow_id for its latest run.
            from_step: The step id to go on from.
            outputs: Results to replace, by step id.
            version: The version of the workflow. Default: that of the run.
            workflow_id: The workflow_id of the new run. Default: a new one.
        """
        return await self.get(id).fork(from_step=from_step, outputs=outputs, version=version, id=workflow_id)

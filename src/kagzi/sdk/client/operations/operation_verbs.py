"""What a client says about everything but runs: schedules, workers, versions, namespaces and the like."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ....core.duration import Duration
from ...transport.connection import Connection
from ...workflow.workflow import Workflow
from ..calls import RunCalls

if TYPE_CHECKING:
    from .bulk import Bulk
    from .namespaces import Namespaces
    from .schedules import ScheduleBuilder, Schedules
    from .stats import Stats
    from .transfers import ImportedRun
    from .versions import Versions
    from .workers import Workers
    from .workflow_types import WorkflowTypes


class OperationVerbs:
    """The part of a client for those who run Kagzi. Each noun is a small object of its own, made when it is first asked for."""

    _connection: Connection
    _namespace: str

    _calls: RunCalls

    async def export(self, id: str) -> AsyncIterator[bytes]:
        """A run with its whole history as lines of JSON, to be kept or imported elsewhere.

        Args:
            id: A run id, or a workflow_id.

        Raises NotFound, and PreconditionFailed if the run goes on meanwhile: pause it, or stop its workers.
        """
        from .transfers import Transfers  # noqa: PLC0415  most programs never ask

        record = await self._calls.find(self._namespace, id)
        async for line in Transfers(self._connection, self._namespace).export(record.run.run_id):
            yield line

    async def import_runs(
        self, lines: Iterable[bytes | str] | AsyncIterable[bytes | str]
    ) -> "AsyncIterator[ImportedRun]":
        """Import runs that were exported. Each is imported whole or not at all; importing the same run again changes
        nothing.

        Args:
            lines: An open file, or any lines.

        Raises InvalidArgument, which names line and field, and AlreadyExists.
        """
        from .transfers import Transfers, as_lines  # noqa: PLC0415  most programs never ask

        async for run in Transfers(self._connection, self._namespace).import_runs(as_lines(lines)):
            yield run

    def schedule(self, id: str) -> "ScheduleBuilder":
        """Describe a schedule and await it: `await client.schedule("daily").workflow(report).cron("0 6 * * *")`.

        Args:
            id: The schedule's name, at most 200 bytes.

        Run it on every deploy: where nothing has changed it changes nothing.
        """
        from .schedules import ScheduleBuilder  # noqa: PLC0415  most programs never ask

        return ScheduleBuilder(self.schedules, id)

    @property
    def schedules(self) -> "Schedules":
        """Schedules: get, list, pause, resume, trigger, backfill, preview, runs, update, delete."""
        from .schedules import Schedules  # noqa: PLC0415  most programs never ask

        return Schedules(self._connection, self._namespace, self._calls)

    @property
    def bulk(self) -> "Bulk":
        """Cancel, retry, terminate or delete all runs that a filter matches."""
        from .bulk import Bulk  # noqa: PLC0415  most programs never ask

        return Bulk(self._connection, self._namespace)

    @property
    def workflow_types(self) -> "WorkflowTypes":
        """Workflow types as queues: list, get, update limits, pause, resume, queue_depth."""
        from .workflow_types import WorkflowTypes  # noqa: PLC0415  most programs never ask

        return WorkflowTypes(self._connection, self._namespace)

    @property
    def namespaces(self) -> "Namespaces":
        """Namespaces: create, get, list, update limits, enable, disable, delete."""
        from .namespaces import Namespaces  # noqa: PLC0415  most programs never ask

        return Namespaces(self._connection)

    async def stats(
        self,
        *,
        workflow: Workflow[Any, Any] | str = "",
        since: datetime | Duration | None = None,
        until: datetime | Duration | None = None,
    ) -> "Stats":
        """What happened minute by minute, and what is open now.

        Args:
            workflow: One workflow, or its name. Default: all.
            since: From this moment, or this long ago (`"2h"`). Default: an hour ago.
            until: To this moment, or this long ago. Default: now.
        """
        from .stats import get_stats  # noqa: PLC0415  most programs never ask

        return await get_stats(self._connection, self._namespace, workflow=workflow, since=since, until=until)

    @property
    def workers(self) -> "Workers":
        """Workers: list, get, events, drain."""
        from .workers import Workers  # noqa: PLC0415  most programs never ask

        return Workers(self._connection, self._namespace)

    @property
    def versions(self) -> "Versions":
        """Versions of workflows: list, counts, set_default, deprecate."""
        from .versions import Versions  # noqa: PLC0415  most programs never ask

        return Versions(self._connection, self._namespace)

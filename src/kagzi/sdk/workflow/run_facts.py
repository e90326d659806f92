"""What a workflow can read about its own run: facts that never change while it runs."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ...core.records import Payload
from ...core.times import to_datetime
from ..execution.run_execution import RunExecution
from .codec import read_context


class RunFacts:
    """The facts of one run."""

    def __init__(self, run: RunExecution) -> None:
        self._run = run

    @property
    def run_id(self) -> str:
        """The id of this run."""
        return self._run.run_id

    @property
    def workflow_id(self) -> str:
        """The id that the run was started with, or a generated one."""
        return self._run.task.workflow_id

    @property
    def namespace(self) -> str:
        """The namespace of the run."""
        return self._run.task.namespace_id

    @property
    def workflow_type(self) -> str:
        """The name of the workflow."""
        return self._run.task.workflow_type

    @property
    def version(self) -> str:
        """The version of the workflow that the run is pinned to."""
        return self._run.task.version

    @property
    def attempt(self) -> int:
        """The attempt of the whole run: 1, or more if the run itself was retried."""
        return self._run.task.attempt

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the run, read-only."""
        return MappingProxyType(dict(self._run.task.labels))

    @cached_property
    def context(self) -> Mapping[str, Any]:
        """The value of `start(context=...)`, read-only. Children, retries, forks and successors (`continue_as_new`)
        inherit it. For data that concerns all of them: a tenant, a request id, a trace."""
        context = self._run.task.context
        return MappingProxyType(read_context(Payload(context.data, dict(context.metadata)) if context.data else None))

    @property
    def scheduled_at(self) -> datetime | None:
        """The time for which a schedule started this run (UTC); None for a run that no schedule started.

        Use it instead of `now()` for the day or hour that the run is about: a late or backfilled run has the time that
        it is for, and its retries, forks and successors (`continue_as_new`) have the same. A triggered run has the time
        of the trigger. Children have none: pass it to them as input.
        """
        scheduled_at_us = self._run.task.scheduled_at_us
        return to_datetime(scheduled_at_us) if scheduled_at_us else None

    @property
    def is_replaying(self) -> bool:
        """Whether the code is being replayed. For logs and metrics; never let it decide what the workflow does."""
        return self._run.ledger.replaying

"""Dispatches effects: the only place that passes the effects of a durable change to this server and to others.

The matcher is notified of work, workers of events of their runs, callers of ends they wait for, timers of due times,
watchers of changes, the cascade of children; other servers are notified over the bus. Nothing here waits.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ...core.effects import NO_EFFECTS, Effects, LeaseNotice
from ...core.error_details import ErrorKind
from ...core.providers import Clock
from ...core.records import RunEnd, RunKey, RunLease
from ...core.run.commands import (
    Command,
    CompleteRun,
    CompleteStep,
    FailStep,
    PauseDiverged,
    RecordStep,
    StartChild,
    StartRun,
)
from ...core.run.handing_on import UnreadEnd
from ...core.run.outcomes import (
    ChildStarted,
    DeadlinePassed,
    Existing,
    LeaseLost,
    Outcome,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    RunNotFound,
    Started,
    StepFailed,
)
from ...core.states import RunStatus
from ...store.protocol import RemoteNotice, TypeKey
from ..background.unread_log import UnreadLog
from ..live.live_lists import LiveLists
from ..live.watching import Watching
from ..matching.lease_registry import Holder, Holding, LeaseRegistry
from ..matching.matcher import Matcher
from ..measurements.measurements import Measurements
from ..services.served import ServedTypes
from ..services.waits import WaitHub
from ..timing.due_times import DueTimes
from .wakeups import Wakeups

_COMPLETIONS: frozenset[type] = frozenset({CompleteStep, RecordStep})  # of an attempt of a step


@cache
def _operation(command: type) -> str:
    """The name of a command as a metric label, for example `complete_step`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", command.__name__).lower()


class Dispatcher:
    """`children_due` is set when children may have to be cancelled. `measurements` counts events."""

    def __init__(
        self,
        *,
        clock: Clock,
        registry: LeaseRegistry,
        matcher: Matcher,
        due_times: DueTimes,
        waits: WaitHub,
        watching: Watching,
        live_lists: LiveLists,
        wakeups: Wakeups,
        served: ServedTypes,
        children_due: asyncio.Event,
        measurements: Measurements | None = None,
    ) -> None:
        self.measurements = measurements or Measurements()
        self._clock = clock
        self._registry = registry
        self._matcher = matcher
        self._due_times = due_times
        self._waits = waits
        self._watching = watching
        self._live_lists = live_lists
        self._wakeups = wakeups
        self._served = served
        self._children_due = children_due
        self._unread_log = UnreadLog(clock)
        self._ended: list[RunEnd] = []
        self._starts: list[tuple[StartRun, Started | Existing]] = []
        self._handlers: dict[type, Callable[[Any, Any], None]] = {
            RunClosed: self._run_closed,
            ChildStarted: self._child_started,
            Parked: self._parked,
            LeaseLost: self._lease_over,
            RunNotFound: self._lease_over,
            DeadlinePassed: self._deadline_passed,
            Started: self._started,
            Existing: self._existing,
            Refused: self._refused,
            RetryScheduled: self._attempt_failed,
            StepFailed: self._attempt_failed,
        }

    def dispatch(self, effects: Effects) -> None:
        if effects is NO_EFFECTS:
            return
        self._matcher.mark_all(effects.pending, announce=True)
        for key in effects.released:
            self._matcher.permit_free(*key)
        for due_at in effects.due:
            self._due_times.add(due_at)
        if effects.children_due:
            self._children_due.set()
        self._watching.touched(run.run_id for run in effects.changed)
        if effects.notices:
            self._notify(effects.notices)
        if effects.ended:
            self._runs_ended(effects.ended)
        if effects.unread:
            self._unread(effects.unread)
        self._live_lists.dispatched(effects)

    def announce(self, types: Sequence[TypeKey]) -> None:
        """Makes other servers look for runs of these types, even if some are found here: only they may have workers."""
        for key in types:
            self._wakeups.pending(key)

    def _notify(self, notices: Sequence[LeaseNotice]) -> None:
        """Notifies the worker if it is connected here; otherwise the other servers, one of which may have it."""
        lost: dict[tuple[Holder, str], list[RunLease]] = {}  # sent in one message per worker
        for notice in notices:
            leased = notice.leased
            holding = self._registry.get(leased.run.run_id, leased.lease)
            if holding is None:
                if notice.worker_id:
                    remote = RemoteNotice(notice.worker_id, leased.run.namespace, leased.run.run_id, notice.event)
                    self._wakeups.notify(remote)
            elif holding.holder is None:
                continue  # a unary worker learns of it with its next heartbeat
            elif notice.event == "lease_lost":
                lost.setdefault((holding.holder, notice.reason), []).append(leased)
            else:
                holding.holder.notify(holding, notice.event, notice.reason)
        for (holder, reason), leases in lost.items():
            holder.lost_leases(leases, reason)
        self._watching.touched(notice.leased.run.run_id for notice in notices)

    def _runs_ended(self, ended: Sequence[RunEnd]) -> None:
        for end in ended:
            self._matcher.permit_free(end.run.namespace)
            self._wakeups.ended(end.run)
        self.measurements.ended_otherwise(ended)
        self._waits.ended(ended)
        self._watching.touched(end.run.run_id for end in ended)

    def _unread(self, endings: Sequence[UnreadEnd]) -> None:
        for end in endings:
            namespace, workflow_type = end.run.namespace, end.workflow_type
            self.measurements.of(namespace, workflow_type).unread_signals += end.unread
            if end.starts:
                self.measurements.started(namespace, workflow_type, "signal")
        self._unread_log.write(endings)

    # --- a batch of commands ------------------------------------------------------------------------------------------

    def committed(self, commands: Sequence[Command], outcomes: Sequence[Outcome], effects: Effects) -> None:
        """Called once per commit. Handles what an outcome means for the command's own run and slot; `effects` concern
        other runs. The common outcomes of steps (recorded, begun) cost one table lookup each."""
        completed = [
            command.run
            for command, outcome in zip(commands, outcomes, strict=True)
            if outcome.__class__ is Recorded and command.__class__ in _COMPLETIONS
        ]
        if completed:
            self._count_completed(completed)
        handlers = self._handlers
        for command, outcome in zip(commands, outcomes, strict=True):
            handler = handlers.get(outcome.__class__)
            if handler is not None:
                handler(command, outcome)
        if self._starts:
            starts, self._starts = self._starts, []
            self._matcher.started(starts)
        if self._ended:
            ended, self._ended = self._ended, []
            self._waits.ended(ended)
        self._watching.recorded(commands)
        self._live_lists.recorded(commands)
        self.dispatch(effects)

    def _count_completed(self, runs: Sequence[RunKey]) -> None:
        """Counts attempts by type. Must come before their runs are released, after which their types are unknown."""
        for (namespace, workflow_type), count in self._registry.count_by_type(runs).items():
            self.measurements.of(namespace, workflow_type).completed_attempts += count

    def _attempt_failed(self, command: Any, outcome: RetryScheduled | StepFailed) -> None:
        if command.__class__ is FailStep:
            run = command.run
            holding = self._registry.get(run.run_id)
            counts = self.measurements.of(run.namespace, "" if holding is None else holding.workflow_type)
            counts.failed_attempts["failed" if outcome.__class__ is StepFailed else "retried"] += 1

    def _count_closed(self, command: Any, outcome: RunClosed, holding: Holding | None) -> None:
        """Without a holding it is a repeat, which was counted the first time."""
        if holding is None:
            return
        measurements, namespace, workflow_type = self.measurements, command.run.namespace, holding.workflow_type
        if outcome.status.ended:
            took_us = None if holding.started_at is None else outcome.at - holding.started_at
            measurements.ended(namespace, workflow_type, outcome.status, took_us)
            if outcome.continued_as is not None:
                measurements.started(namespace, workflow_type, "continue_as_new")
        elif command.__class__ is PauseDiverged and command.problem.kind is ErrorKind.NONDETERMINISM:
            measurements.runs_diverged += 1

    def _run_closed(self, command: Any, outcome: RunClosed) -> None:
        run = command.run
        holding = self._release(command)
        self._count_closed(command, outcome, holding)
        if outcome.status.ended:
            self._wakeups.ended(run)
            self._waits.ended_here(run)
            if self._waits.waited_for(run):
                self._report_end(command, outcome)
            if outcome.continued_as is not None:
                self._mark(command, holding)
        elif outcome.status is RunStatus.PENDING:
            self._mark(command, holding)
        elif outcome.retry_at is not None:
            self._due_times.add(outcome.retry_at)

    def _release(self, command: Any) -> Holding | None:
        """The worker no longer holds the run: frees its slot and its permit."""
        holding = self._registry.remove(command.run.run_id, command.lease)
        self._matcher.permit_free(command.run.namespace, "" if holding is None else holding.workflow_type)
        return holding

    def _mark(self, command: Any, holding: Holding | None) -> None:
        """Marks the type of the released run as having work."""
        if holding is not None and holding.workflow_type:
            self._matcher.mark(TypeKey(command.run.namespace, holding.workflow_type), announce=True)
        else:
            self._matcher.mark_namespace(command.run.namespace)

    def _report_end(self, command: Any, outcome: RunClosed) -> None:
        """A completed run's output is in the command. The error of a failed run is read from the store, which may have
        changed it."""
        if isinstance(command, CompleteRun) and outcome.status is RunStatus.COMPLETED:
            self._ended.append(RunEnd(run=command.run, status=outcome.status, output=command.output))
        else:
            self._waits.poll_runs((command.run,))

    def _child_started(self, command: StartChild, outcome: ChildStarted) -> None:
        start = command.start
        if not outcome.created or outcome.child_run_id != start.run.run_id:
            return
        self.measurements.started(start.run.namespace, start.workflow_type, "child")
        self._waits.started_here(start.run)
        self._add_due(start)
        if outcome.status is RunStatus.PENDING:
            key = TypeKey(start.run.namespace, start.workflow_type)
            self._matcher.mark(key, announce=True)
            holding = self._registry.get(command.run.run_id, command.lease)
            if holding is not None and not self._matcher.serves(key, start.version or ""):
                self._served.child_started(key, start.version or "", holding)

    def _parked(self, command: Any, outcome: Parked) -> None:
        self._release(command)
        if outcome.wake_at is not None:
            self._due_times.add(outcome.wake_at)

    def _lease_over(self, command: Any, outcome: Outcome) -> None:
        if outcome.__class__ is LeaseLost:
            self.measurements.fenced_writes[_operation(command.__class__)] += 1
        if isinstance(command, StartRun):
            self._matcher.unassign(command.run.run_id)
        else:
            self._registry.remove(command.run.run_id, command.lease)

    def _deadline_passed(self, command: Any, outcome: DeadlinePassed) -> None:
        self._due_times.add(self._clock.now())

    def _started(self, command: StartRun, outcome: Started | Existing) -> None:
        if outcome.__class__ is Started:
            cause = "client" if command.signal is None else "signal"
            self.measurements.started(command.run.namespace, command.workflow_type, cause)
        self._waits.started_here(command.run)
        self._add_due(command)
        if command.assignment is not None:
            self._starts.append((command, outcome))
        if outcome.status is RunStatus.PENDING:
            self._matcher.mark(TypeKey(command.run.namespace, command.workflow_type), announce=True)

    def _add_due(self, start: StartRun) -> None:
        for due_at in (start.deadline_at, start.start_at):
            if due_at is not None:
                self._due_times.add(due_at)

    def _existing(self, command: StartRun, outcome: Existing) -> None:
        if outcome.run_id != command.run.run_id:
            self._matcher.unassign(command.run.run_id)
            return
        # Our own start, written before and repeated after an outage: it is no longer known which run it replaced.
        self._started(command, outcome)
        if command.on_conflict == "replace":
            self._waits.poll_namespace(command.run.namespace)
            self._wakeups.ended_somewhere(command.run.namespace)
            self._children_due.set()

    def _refused(self, command: Command, outcome: Refused) -> None:
        if isinstance(command, StartRun):
            self._matcher.unassign(command.run.run_id)

"""What follows from a commit: slots become free, waiting callers hear of ends, timers of due times, the matcher of work.

Called once per commit. The plain outcomes of steps (recorded, begun) have no effects and cost one look into a table each.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...core.providers import Clock
from ...core.records import RunEnd, RunKey
from ...core.run.commands import Command, CompleteRun, DecideRace, StartChild, StartRun
from ...core.run.outcomes import (
    ChildStarted,
    DeadlinePassed,
    Existing,
    LeaseLost,
    Outcome,
    Parked,
    Refused,
    RunClosed,
    RunNotFound,
    Started,
)
from ...core.states import RunStatus
from ...store.protocol import TypeKey
from ..matching.lease_registry import Holders, Holding
from ..matching.matcher import Matcher
from ..services.waits import WaitHub
from ..timing.timers import Timers
from .notifications import News
from .wakeups import Wakeups


class Effects:
    """`on_unserved_child` hears of children that wait and whose type nobody connected here serves."""

    def __init__(
        self,
        *,
        clock: Clock,
        holders: Holders,
        matcher: Matcher,
        timers: Timers,
        waits: WaitHub,
        wakeups: Wakeups,
        news: News,
        on_recorded: Callable[[Sequence[Command]], None],
    ) -> None:
        self._clock = clock
        self._holders = holders
        self._matcher = matcher
        self._timers = timers
        self._waits = waits
        self._wakeups = wakeups
        self._news = news
        self._on_recorded = on_recorded
        self.on_unserved_child: Callable[[TypeKey, str, Holding], None] = _nobody
        self._ends: list[RunEnd] = []
        self._starts: list[tuple[StartRun, Started | Existing]] = []
        self._handlers: dict[type, Callable[[Any, Any], None]] = {
            RunClosed: self._run_closed,
            ChildStarted: self._child_started,
            Parked: self._parked,
            LeaseLost: self._let_go,
            RunNotFound: self._let_go,
            DeadlinePassed: self._deadline_passed,
            Started: self._started,
            Existing: self._existing,
            Refused: self._refused,
        }

    def apply(self, commands: Sequence[Command], outcomes: Sequence[Outcome]) -> None:
        handlers = self._handlers
        for command, outcome in zip(commands, outcomes, strict=True):
            handler = handlers.get(outcome.__class__)
            if handler is not None:
                handler(command, outcome)
            elif command.__class__ is DecideRace:
                self._race_decided(command)
        if self._starts:
            starts, self._starts = self._starts, []
            self._matcher.started(starts)
        if self._ends:
            ends, self._ends = self._ends, []
            self._waits.tell(ends)
        self._on_recorded(commands)

    def _run_closed(self, command: Any, outcome: RunClosed) -> None:
        run = command.run
        holding = self._holders.let_go(run.run_id, command.lease)
        self._permit_free(command, holding)
        if outcome.status.ended:
            self._wakeups.ended(run)
            self._waits.ended_here(run)
            if self._waits.waited_for(run):
                self._tell_end(command, outcome)
            if outcome.stirred:
                self._news.stirred(outcome.stirred)
            if outcome.has_children:
                self._news.children()
            if outcome.continued_as is not None:
                self._mark(command, holding)
        elif outcome.status is RunStatus.PENDING:
            self._mark(command, holding)
        elif outcome.retry_at is not None:
            self._timers.hear(outcome.retry_at)

    def _mark(self, command: Any, holding: Holding | None) -> None:
        """There is work of the type of the run that was held."""
        if holding is not None and holding.workflow_type:
            self._matcher.mark(TypeKey(command.run.namespace, holding.workflow_type), announce=True)
        else:
            self._matcher.mark_namespace(command.run.namespace)

    def _child_started(self, command: StartChild, outcome: ChildStarted) -> None:
        start = command.start
        if not outcome.created or outcome.child_run_id != start.run.run_id:
            return
        self._waits.started_here(start.run)
        if outcome.ousted:
            self._news.ousted(outcome.ousted)
        for due_at in (start.deadline_at, start.start_at):
            if due_at is not None:
                self._timers.hear(due_at)
        if outcome.status is RunStatus.PENDING:
            key = TypeKey(start.run.namespace, start.workflow_type)
            self._matcher.mark(key, announce=True)
            holding = self._holders.get(command.run.run_id, command.lease)
            if holding is not None and not self._matcher.serves(key, start.version or ""):
                self.on_unserved_child(key, start.version or "", holding)

    def _race_decided(self, command: Any) -> None:
        if command.losers:
            self._news.children()  # one of them may have started some

    def _tell_end(self, command: Any, outcome: RunClosed) -> None:
        """The command holds the output of a run that completed. The error of one that failed is what the store made of it."""
        if isinstance(command, CompleteRun) and outcome.status is RunStatus.COMPLETED:
            self._ends.append(RunEnd(run=command.run, status=outcome.status, output=command.output))
        else:
            self._waits.look((command.run,))

    def _permit_free(self, command: Any, holding: Holding | None) -> None:
        self._matcher.permit_free(command.run.namespace, "" if holding is None else holding.workflow_type)

    def _parked(self, command: Any, outcome: Parked) -> None:
        self._permit_free(command, self._holders.let_go(command.run.run_id, command.lease))
        if outcome.wake_at is not None:
            self._timers.hear(outcome.wake_at)

    def _let_go(self, command: Any, outcome: Outcome) -> None:
        if isinstance(command, StartRun):
            self._matcher.unassign(command.run.run_id)
        else:
            self._holders.let_go(command.run.run_id, command.lease)

    def _deadline_passed(self, command: Any, outcome: DeadlinePassed) -> None:
        self._timers.hear(self._clock.now())

    def _started(self, command: StartRun, outcome: Started | Existing) -> None:
        run = command.run
        self._waits.started_here(run)
        if outcome.stirred:
            self._news.stirred(outcome.stirred)
        if isinstance(outcome, Started) and outcome.ousted:
            self._news.ousted(outcome.ousted)
        if command.on_conflict == "replace":
            self._replaced(run.namespace, outcome)
        if command.deadline_at is not None:
            self._timers.hear(command.deadline_at)
        if command.assignment is not None:
            self._starts.append((command, outcome))
        if outcome.status is RunStatus.PENDING:
            self._matcher.mark(TypeKey(run.namespace, command.workflow_type), announce=True)
        elif command.start_at is not None:
            self._timers.hear(command.start_at)

    def _replaced(self, namespace: str, outcome: Started | Existing) -> None:
        """Another run may have been ended by this start. Which one is not known of a start that was repeated after an outage."""
        if isinstance(outcome, Existing):
            self._waits.look_in(namespace)
            self._wakeups.ended_somewhere(namespace)
        elif outcome.replaced:
            ended = RunKey(namespace, outcome.replaced)
            self._waits.look((ended,))
            self._wakeups.ended(ended)
        self._news.children()

    def _existing(self, command: StartRun, outcome: Existing) -> None:
        if outcome.run_id == command.run.run_id:
            self._started(command, outcome)  # our own start, written before and repeated after an outage
        else:
            self._matcher.unassign(command.run.run_id)
            if outcome.stirred:
                self._news.stirred(outcome.stirred)

    def _refused(self, command: Command, outcome: Refused) -> None:
        if isinstance(command, StartRun):
            self._matcher.unassign(command.run.run_id)


def _nobody(key: TypeKey, version: str, holding: Holding) -> None:
    """Until the engine is composed nobody has to hear of it."""

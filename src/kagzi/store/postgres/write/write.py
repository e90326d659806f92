"""`write`: divides a batch into starts and the commands of each run; each part is one or two statements.

No faulty command and no locked row prevents the others from being recorded.
"""

from collections.abc import Sequence

from ....core.effects import Effects, merge
from ....core.providers import Rng
from ....core.records import RunKey
from ....core.run.commands import ClosingCommand, Command, StartRun, StepCommand
from ....core.run.outcomes import Busy, Failed, Outcome
from ....core.times import Timestamp
from ...protocol import LeaseTerms
from ..connection.connection import Session
from ..connection.failures import CONTENTION
from .batch import Group, Outcomes, WorkerGroup, Writing, bisect_failures
from .careful_path import settle
from .fast_path import FastPath
from .starts import start_runs

_LOCK_ROUNDS = 3


class Writer:
    """Remembers which rows were locked, so that the next batch checks them before it waits for them."""

    def __init__(self, rng: Rng, *, fast_path: bool) -> None:
        self._rng = rng
        self._fast_path = fast_path
        self._suspects: set[str] = set()

    async def write(
        self, session: Session, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms
    ) -> tuple[Sequence[Outcome], Effects]:
        outcomes: Outcomes = [None] * len(batch)
        starts: list[Group[StartRun]] = []
        runs: dict[RunKey, list[tuple[int, StepCommand | ClosingCommand]]] = {}
        for index, command in enumerate(batch):
            if isinstance(command, StartRun):
                starts.append((command.run, [(index, command)]))
            elif (commands := runs.get(command.run)) is None:
                runs[command.run] = [(index, command)]
            else:
                commands.append((index, command))
        writing = Writing(session, now, terms, self._rng, outcomes, [])
        if starts:
            await bisect_failures(session, starts, outcomes, lambda part: start_runs(writing, part))
        if runs:
            groups = sorted(runs.items(), key=_run_id)  # the order of locking
            await bisect_failures(session, groups, outcomes, lambda part: self._record(writing, part))
        decided = [Failed("no outcome was decided") if outcome is None else outcome for outcome in outcomes]
        return decided, merge(writing.effects)

    async def _record(self, writing: Writing, groups: Sequence[WorkerGroup]) -> None:
        for attempt in range(_LOCK_ROUNDS):
            if attempt or not self._suspects.isdisjoint([run.run_id for run, _ in groups]):
                groups = await self._unlocked(writing, groups)
            if not groups:
                return
            fast = FastPath()
            rest = [group for group in groups if not (self._fast_path and fast.add(group))]
            try:
                if len(fast):
                    rest += await fast.record(writing)
                if rest:
                    rest.sort(key=_run_id)
                    await settle(writing, rest)
                return
            except CONTENTION:
                groups = [group for group in groups if writing.outcomes[group[1][0][0]] is None]
        _busy(groups, writing.outcomes)

    async def _unlocked(self, writing: Writing, groups: Sequence[WorkerGroup]) -> Sequence[WorkerGroup]:
        """The groups whose rows are not locked; the others are Busy."""
        rows = await writing.session.read("locked_runs", run_ids=[run.run_id for run, _ in groups])
        locked = {row["run_id"] for row in rows}
        self._suspects.difference_update(run.run_id for run, _ in groups)
        self._suspects |= locked
        _busy([group for group in groups if group[0].run_id in locked], writing.outcomes)
        return [group for group in groups if group[0].run_id not in locked]


def _run_id(group: WorkerGroup) -> str:
    return group[0].run_id


def _busy(groups: Sequence[WorkerGroup], outcomes: Outcomes) -> None:
    for _, commands in groups:
        for index, _ in commands:
            outcomes[index] = Busy()

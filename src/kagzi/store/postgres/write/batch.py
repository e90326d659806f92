"""A batch that is being written, and the guarantee that one bad command does not fail the others."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import asyncpg

from ....core.effects import Effects
from ....core.providers import Rng
from ....core.records import RunKey
from ....core.run.commands import ClosingCommand, Command, StepCommand
from ....core.run.decide import decide
from ....core.run.faults import fault_of
from ....core.run.outcomes import Failed, Outcome
from ....core.run.state import RunState
from ....core.times import Timestamp
from ...protocol import LeaseTerms
from ..connection.connection import Session
from ..connection.failures import Failure, describe, failure_of

Kind = TypeVar("Kind", bound=Command)

Group: TypeAlias = tuple[RunKey, list[tuple[int, Kind]]]
"""The commands of one run, each with its index in the batch."""

WorkerGroup: TypeAlias = Group[StepCommand | ClosingCommand]

Outcomes: TypeAlias = list[Outcome | None]
"""By index in the batch; None while undecided."""


class Writing(NamedTuple):
    """What every writer of a part of a batch needs."""

    session: Session
    now: Timestamp
    terms: LeaseTerms
    rng: Rng
    outcomes: Outcomes
    effects: list[Effects]  # of committed changes only

    def decide(self, run: RunState | None, command: Command) -> Outcome:
        """What the command does to the run. A command that cannot be stored is refused in any state: if it were
        written, a statement would fail; if it is not, it is checked here."""
        before = None if run is None else run.seq
        outcome = decide(run, command, self.now, self.rng)
        if run is not None and run.seq != before:
            return outcome
        return fault_of(command) or outcome


Act: TypeAlias = Callable[[Sequence[Group[Kind]]], Awaitable[None]]
"""Applies commands and fills in their outcomes, as far as it gets."""


async def bisect_failures(session: Session, groups: Sequence[Group[Kind]], outcomes: Outcomes, act: Act[Kind]) -> None:
    """Act on all groups. If a statement fails, refuse the faulty commands, and bisect until those that make it fail are
    alone. They are Failed, and so are the later commands of their run.

    Failures that no command causes are raised, and so is an internal failure of PostgreSQL that affects all groups. If
    there was only one group, the cause is unknown, and the connection is not used again.
    """
    bisection = _Bisection(outcomes, act)
    await bisection.act_on(groups)
    if bisection.broken is not None and bisection.failed == len(groups):
        if len(groups) > 1:
            raise bisection.broken
        session.suspect = True


_MOST_BROKEN = 8
"""After this many internal failures of PostgreSQL in a row, without any success, the commands are not the cause."""


class _Bisection(Generic[Kind]):
    """Counts the `failed` groups; `broken` is the last internal failure of PostgreSQL."""

    def __init__(self, outcomes: Outcomes, act: Act[Kind]) -> None:
        self._outcomes = outcomes
        self._act = act
        self._worked = False
        self.failed = 0
        self.broken: asyncpg.PostgresError | None = None

    async def act_on(self, groups: Sequence[Group[Kind]]) -> None:
        try:
            await self._act(groups)
            self._worked = True
            return
        except (asyncpg.PostgresError, ValueError) as error:
            kind = failure_of(error)
            if kind in (Failure.LOST, Failure.CONTENDED):
                raise
            failure = error
        if kind is Failure.BROKEN and self.failed >= _MOST_BROKEN and not self._worked:
            raise failure
        groups = _undecided(groups, self._outcomes)
        sound = _without_faults(groups, self._outcomes)
        if not sound:
            return
        if len(sound) < len(groups) or sum(len(commands) for _, commands in sound) < sum(len(c) for _, c in groups):
            await self.act_on(sound)
        elif len(sound) > 1:
            half = len(sound) // 2
            await self.act_on(sound[:half])
            await self.act_on(sound[half:])
        elif len(sound[0][1]) > 1:
            await self._act_in_order(*sound[0])
        else:
            self._fail(sound[0][1], failure)

    async def _act_in_order(self, run: RunKey, commands: list[tuple[int, Kind]]) -> None:
        for place, command in enumerate(commands):
            await self.act_on([(run, [command])])
            outcome = self._outcomes[command[0]]
            if isinstance(outcome, Failed):  # no later command of a run may take effect without the earlier ones
                for index, _ in commands[place + 1 :]:
                    self._outcomes[index] = outcome
                return

    def _fail(self, commands: list[tuple[int, Kind]], failure: Exception) -> None:
        self.failed += 1
        if isinstance(failure, asyncpg.PostgresError) and failure_of(failure) is Failure.BROKEN:
            self.broken = failure
        for index, _ in commands:
            self._outcomes[index] = Failed(f"PostgreSQL refused it: {describe(failure)}")


def _undecided(groups: Sequence[Group[Kind]], outcomes: Outcomes) -> list[Group[Kind]]:
    """The groups that no earlier statement of the same act has recorded."""
    return [(run, commands) for run, commands in groups if any(outcomes[index] is None for index, _ in commands)]


def _without_faults(groups: Sequence[Group[Kind]], outcomes: Outcomes) -> list[Group[Kind]]:
    sound: list[Group[Kind]] = []
    for run, commands in groups:
        kept: list[tuple[int, Kind]] = []
        for index, command in commands:
            fault = fault_of(command)
            if fault is None:
                kept.append((index, command))
            else:
                outcomes[index] = fault
        if kept:
            sound.append((run, kept))
    return sound

"""A batch that is being written, and the promise that one bad command does not fail its neighbours."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import asyncpg

from ...core.commands import ClosingCommand, Command, StepCommand
from ...core.outcomes import Outcome
from ...core.records import RunKey
from ...core.seams import Dice
from ...core.times import Timestamp
from ..protocol import LeaseTerms
from .blame import fault_of
from .connections import Session, is_loss
from .refusals import internal

Kind = TypeVar("Kind", bound=Command)

Group: TypeAlias = tuple[RunKey, list[tuple[int, Kind]]]
"""The commands of one run, each with its place in the batch."""

WorkerGroup: TypeAlias = Group[StepCommand | ClosingCommand]

Outcomes: TypeAlias = list[Outcome | None]
"""By place in the batch; None as long as nothing is decided."""


class Writing(NamedTuple):
    """What everybody needs who writes a part of a batch."""

    session: Session
    now: Timestamp
    terms: LeaseTerms
    dice: Dice
    outcomes: Outcomes


Act: TypeAlias = Callable[[Sequence[Group[Kind]]], Awaitable[None]]
"""Does what the commands say and fills in their outcomes, as far as it gets."""


async def isolate(groups: Sequence[Group[Kind]], outcomes: Outcomes, act: Act[Kind]) -> None:
    """Act on all groups. If a statement fails: refuse the commands at fault, and go on by halves until they are alone."""
    try:
        await act(groups)
        return
    except (asyncpg.PostgresError, ValueError) as error:
        if is_loss(error):
            raise
        failure = error
    groups = _undecided(groups, outcomes)
    sound = _without_faults(groups, outcomes)
    if not sound:
        return
    if len(sound) < len(groups) or sum(len(commands) for _, commands in sound) < sum(len(c) for _, c in groups):
        await isolate(sound, outcomes, act)
    elif len(sound) > 1:
        half = len(sound) // 2
        await isolate(sound[:half], outcomes, act)
        await isolate(sound[half:], outcomes, act)
    elif len(sound[0][1]) > 1:
        run, commands = sound[0]
        for command in commands:
            await isolate([(run, [command])], outcomes, act)
    else:
        outcomes[sound[0][1][0][0]] = internal(f"PostgreSQL refused it: {type(failure).__name__}: {failure}")


def _undecided(groups: Sequence[Group[Kind]], outcomes: Outcomes) -> list[Group[Kind]]:
    """What an earlier statement of the same act has recorded is done."""
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

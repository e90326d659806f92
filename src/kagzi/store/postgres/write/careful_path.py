"""The careful path: read the runs and the relevant steps, decide command by command, write the results.

The write requires that the run's `seq`, which serves as its version, has not changed since the read; otherwise the path
is repeated. So a decision is as safe as one made under a lock, and costs two round trips for any number of commands.
Commands that concern other runs, or the signals of waits that were given up, are left to children.py.
"""

from collections.abc import Sequence

from ....core.effects import CHILDREN_DUE
from ....core.run.commands import CancelRun, Command, CompleteRun, ContinueAsNew, FailRun, StartChild
from ....core.run.outcomes import Busy, Outcome
from ....core.run.state import RunState
from .batch import WorkerGroup, Writing
from .children import settle_related
from .run_state import read_states, waits_with_values, write_states

_ROUNDS = 5
_ENDINGS = (CompleteRun, FailRun, CancelRun)


async def settle(writing: Writing, groups: Sequence[WorkerGroup]) -> None:
    """Fill in the outcome of every command of these groups, which are in the order of their run ids."""
    related = [group for group in groups if _has(group, (StartChild, ContinueAsNew))]
    if related:
        groups = [group for group in groups if not _has(group, (StartChild, ContinueAsNew))]
    related += await _settle_alone(writing, groups)
    if related:
        related.sort(key=lambda group: group[0].run_id)
        await settle_related(writing, related)


async def _settle_alone(writing: Writing, groups: Sequence[WorkerGroup]) -> list[WorkerGroup]:
    """Returns the groups whose end concerns another run, and those that give up waits whose signals have come."""
    related: list[WorkerGroup] = []
    for _ in range(_ROUNDS):
        if not groups:
            return related
        states = await read_states(writing.session, groups)
        taking_back = {number for number, _ in waits_with_values(groups, states)}
        alone: list[tuple[WorkerGroup, RunState | None]] = []
        for number, group in enumerate(groups, start=1):
            state = states.get(number)
            if number in taking_back or (state is not None and state.watched and _has(group, _ENDINGS)):
                related.append(group)
            else:
                alone.append((group, state))
        groups = await _decide_and_write(writing, alone, related)
    for _, commands in groups:
        for index, _ in commands:
            writing.outcomes[index] = Busy()
    return related


async def _decide_and_write(
    writing: Writing, alone: Sequence[tuple[WorkerGroup, RunState | None]], related: list[WorkerGroup]
) -> list[WorkerGroup]:
    """Fill in the outcomes; returns the groups whose runs have changed since they were read. Those that end with unread
    signals, which may start another run, are added to `related`."""
    decided: list[tuple[int, Outcome]] = []
    changed: list[tuple[WorkerGroup, RunState]] = []
    for group, state in alone:
        outcomes = [(index, writing.decide(state, command)) for index, command in group[1]]
        if state is not None and state.ended_with_unread and state.changed:
            related.append(group)
            continue
        decided += outcomes
        if state is not None and state.changed:
            changed.append((group, state))
    taken = await write_states(writing, [state for _, state in changed]) if changed else ()
    groups = [group for number, (group, _) in enumerate(changed, start=1) if number not in taken]
    again = {index for _, commands in groups for index, _ in commands}
    if any(state.children_due for number, (_, state) in enumerate(changed, start=1) if number in taken):
        writing.effects.append(CHILDREN_DUE)
    for index, outcome in decided:
        if index not in again:
            writing.outcomes[index] = outcome
    return groups


def _has(group: WorkerGroup, kinds: tuple[type[Command], ...]) -> bool:
    return any(isinstance(command, kinds) for _, command in group[1])

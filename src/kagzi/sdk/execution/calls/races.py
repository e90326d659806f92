"""ctx.race, and how its losers are closed durably: waits and timers removed, children cancelled, steps abandoned."""

import asyncio
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import msgspec

from ....core.errors import Diverged
from ....v1 import worker_pb2 as pb
from ..delivery import unheard
from ..ledger import RACE, WITHDRAWN
from ..ports import Answer
from ..run_execution import RunExecution
from ..scopes import AnyCoroutine, Scope
from ..teardown import retrieve_exception
from .branches import Branches, settle
from .steps import scope_of


async def execute_race(run: RunExecution, race_id: str, coroutines: Mapping[str, AnyCoroutine]) -> tuple[str, Any]:
    """The name and value of the branch that finished first; if it failed, its error is raised.

    The first is the one whose result is delivered first, by seq. The winner is recorded before this
    returns.
    """
    recorded = run.take(race_id, RACE)
    opened = Branches(run, scope_of(run), race_id, coroutines, is_race=True)
    try:
        winner = await _first(opened.tasks, None if recorded is None else _winner_of(run, recorded, opened))
    except BaseException:
        await opened.give_up()
        raise
    try:
        await decide(run, race_id, winner, opened, recorded)
    except BaseException:
        retrieve_exception(opened.tasks[winner])
        raise
    return winner, opened.tasks[winner].result()


async def _first(tasks: Mapping[str, "asyncio.Task[Any]"], known: str | None) -> str:
    """The name of the branch that finished first, or of the recorded winner."""
    open_ = set(tasks.values())
    while True:
        done, open_ = await asyncio.wait(open_, return_when=asyncio.FIRST_COMPLETED)
        for name, task in tasks.items():
            if task in done and known in (None, name):
                return name


def _winner_of(run: RunExecution, recorded: pb.HistoryStep, opened: Branches) -> str:
    winner = str(msgspec.json.decode(recorded.output.data or b'""'))
    if winner not in opened.tasks:
        raise run.diverge(
            Diverged(
                f"race {recorded.step_id!r} was won by branch {winner!r}, which the code no longer has. "
                f"Deploy the code that began the run.",
                metadata={"step_id": recorded.step_id},
            )
        )
    return winner


async def decide(
    run: RunExecution,
    group: str,
    winner: str,
    opened: Branches,
    recorded: pb.HistoryStep | None,
    *,
    if_open: bool = False,
) -> None:
    """Close all branches but one, and record that. With `if_open`, nothing is recorded if there is nothing to close."""
    losers = [task for name, task in opened.tasks.items() if name != winner]
    decided_seq = 0 if recorded is None else recorded.begun_seq
    open_steps = _close_scopes(run, {scope for name, scope in opened.scopes.items() if name != winner}, decided_seq)
    for task in losers:
        task.cancel()
    try:
        if recorded is not None and recorded.seq:
            await run.delivery.reach(recorded)
        elif open_steps or not if_open:
            await _record(run, group, winner, open_steps)
    finally:
        await settle(losers)


async def _record(run: RunExecution, group: str, winner: str, open_steps: Collection[str]) -> None:
    if run.ledger.replaying and run.barrier.is_open and not run.ledger.signals.keys().isdisjoint(open_steps):
        # Later values of these signals may be recorded already: they must not be delivered before this is.
        run.caught_up()
    if not run.can_proceed:
        try:
            await run.may_act(group)
        except asyncio.CancelledError:  # there will be no record: each wait is withdrawn alone
            for step_id in run.ledger.signals.keys() & open_steps:
                _withdraw(run, step_id)
            raise
    future: asyncio.Future[Answer] = run.claim.loop.create_future()
    race = _send_record(run, group, future, open_steps)
    race.name = group.rpartition("/")[2].partition("#")[0]
    race.winner = winner
    race.parent_step_id = scope_of(run).race
    await run.answer(future)


def _send_record(
    run: RunExecution, record_id: str, future: "asyncio.Future[Any]", step_ids: Collection[str]
) -> pb.RaceOperation:
    """Tell the server that the code no longer waits for these steps. Signals that had come for them go to other waits:
    until it is known which, those waits get nothing."""
    names = run.ledger.give_up(step_ids)
    if run.ledger.waits_for(names):
        run.delivery.restarting.add(record_id)
    run.ledger.steps_count += 1  # there is always room for the record
    race = run.claim.send(partial(_recorded, run, record_id, future, names)).race
    race.step_id = record_id
    race.losers.extend(step_ids)
    return race


def _recorded(
    run: RunExecution, record_id: str, future: "asyncio.Future[Any]", names: Collection[str], answer: Answer
) -> None:
    if names and run.live and answer.refusal is None:
        run.incoming.read_again(names)
    run.deliver(record_id, future, answer)
    if run.live:
        run.tasks.idle.start()


def _close_scopes(run: RunExecution, scopes: Collection[Scope], decided_seq: int) -> list[str]:
    """Close these branches. Returns their open steps, which a record has to close."""
    open_steps = run.ledger.close_scopes(scopes, decided_seq)
    for step_id in open_steps:
        run.waits.drop(step_id)
    if not run.ledger.outstanding:
        run.barrier.reached_all()
    return open_steps


def withdraw(run: RunExecution, step_id: str) -> None:
    """The code that waited for this step was cancelled: a later result must not be delivered to it, nor wake the
    run."""
    if not (_is_withdrawn(run, step_id) or run.cancelling):
        _withdraw(run, step_id)


def withdraw_signal(run: RunExecution, step_id: str) -> None:
    """As `withdraw`, for a wait for a signal: another wait gets its value, if it has one. Also in a run that is being
    cancelled, whose cleanup may wait for the same signal."""
    if not _is_withdrawn(run, step_id) and step_id in run.ledger.signals:
        _withdraw(run, step_id)


def _is_withdrawn(run: RunExecution, step_id: str) -> bool:
    """Whether the server knows, or need not know."""
    if step_id in run.ledger.closed or not run.live:
        return True
    if run.ledger.take(step_id + WITHDRAWN, RACE) is None:
        return False
    run.ledger.signals.pop(step_id, None)
    run.delivery.reached()
    return True


def _withdraw(run: RunExecution, step_id: str) -> None:
    run.ledger.closed.add(step_id)
    run.barrier.defer(partial(_send_withdrawal, run, step_id))


def _send_withdrawal(run: RunExecution, step_id: str) -> None:
    _send_record(run, step_id + WITHDRAWN, unheard(run.claim.loop), (step_id,)).name = "withdrawn"

"""Scans take turns: few at once, fewer of one namespace, round robin over those that wait."""

import asyncio

import pytest

from kagzi.core import limits
from kagzi.core.errors import ResourceExhausted
from kagzi.store.scans import ScanTurns
from tests.support.timeouts import LOADED_MACHINE_S


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def scan(turns: ScanTurns, namespace: str, order: list[str]) -> None:
    async with turns.take(namespace):
        order.append(namespace)
        await settle()


async def test_namespaces_take_turns() -> None:
    turns = ScanTurns(at_once=1, per_namespace=1)
    order: list[str] = []
    greedy = [asyncio.create_task(scan(turns, "greedy", order)) for _ in range(10)]
    await asyncio.sleep(0)
    others = [asyncio.create_task(scan(turns, namespace, order)) for namespace in ("one", "two")]
    await asyncio.gather(*greedy, *others)
    assert len(order) == 12
    assert {"one", "two"} <= set(order[:4]), "the others waited for all that were asked before them"


async def test_one_namespace_never_has_all_turns() -> None:
    turns = ScanTurns(at_once=2, per_namespace=1)
    await turns.enter("greedy")
    waiting = asyncio.create_task(turns.enter("greedy"))
    await settle()
    assert not waiting.done()
    await asyncio.wait_for(turns.enter("other"), LOADED_MACHINE_S)
    turns.leave("greedy")
    await asyncio.wait_for(waiting, LOADED_MACHINE_S)


async def test_too_many_that_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCANS_WAITING", 3)
    turns = ScanTurns(at_once=1)
    await turns.enter("n")
    waiting = [asyncio.create_task(turns.enter("n")) for _ in range(3)]
    await settle()
    with pytest.raises(ResourceExhausted, match="are waiting, the limit"):
        await turns.enter("n")
    for task in waiting:
        turns.leave("n")
        await asyncio.wait_for(task, LOADED_MACHINE_S)
    turns.leave("n")
    async with turns.take("n"):
        pass


async def test_who_is_cancelled_gives_its_turn_on() -> None:
    turns = ScanTurns(at_once=1)
    await turns.enter("n")
    first, second = (asyncio.create_task(turns.enter("n")) for _ in range(2))
    await settle()
    turns.leave("n")  # the first has its turn now, and is cancelled before it knows
    first.cancel()
    await asyncio.wait_for(second, LOADED_MACHINE_S)
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_who_is_cancelled_at_that_moment_takes_no_turn() -> None:
    """Its task has not run since: the turn goes to the next, and none is lost."""
    turns = ScanTurns(at_once=1)
    await turns.enter("n")
    gone, last = asyncio.create_task(turns.enter("n")), asyncio.create_task(turns.enter("n"))
    await settle()
    gone.cancel()
    turns.leave("n")
    await asyncio.wait_for(last, LOADED_MACHINE_S)
    alone = asyncio.create_task(turns.enter("n"))
    await settle()
    alone.cancel()
    turns.leave("n")
    await settle()
    async with asyncio.timeout(LOADED_MACHINE_S), turns.take("n"):
        assert gone.cancelled()
        assert alone.cancelled()

"""Bytes of answers that nobody has read yet: bounded in all and for each namespace, and nobody waits for ever."""

import asyncio

import pytest

from kagzi.core.errors import ResourceExhausted
from kagzi.server.grpc import answer_budget as module
from kagzi.server.grpc.answer_budget import Answers
from tests.support.timeouts import LOADED_MACHINE_S

TOTAL, SHARE, ONE = 100, 60, 30


class Holder:
    """A call that holds room until it is let go."""

    def __init__(self, answers: Answers, namespace: str, size: int = ONE) -> None:
        self.admitted = asyncio.Event()
        self._done = asyncio.Event()
        self.task = asyncio.create_task(self._hold(answers, namespace, size))

    async def _hold(self, answers: Answers, namespace: str, size: int) -> None:
        async with answers.reserve(namespace, size):
            self.admitted.set()
            await self._done.wait()

    async def release(self) -> None:
        self._done.set()
        await self.task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_namespace_gets_its_share_and_others_pass() -> None:
    answers = Answers(TOTAL, SHARE)
    greedy = [Holder(answers, "greedy") for _ in range(10)]
    await settle()
    assert [holder.admitted.is_set() for holder in greedy] == [True] * 2 + [False] * 8
    modest = Holder(answers, "quiet")
    await settle()
    assert modest.admitted.is_set()
    assert answers.used == 3 * ONE
    await modest.release()
    for holder in greedy:
        await asyncio.wait_for(holder.admitted.wait(), LOADED_MACHINE_S)
        assert answers.used <= SHARE
        await holder.release()
    assert answers.used == 0


async def test_what_is_known_to_be_small_frees_its_reservation_at_once() -> None:
    answers = Answers(TOTAL, SHARE)
    async with answers.reserve("n", SHARE) as reservation:
        waiting = Holder(answers, "n", SHARE - 1)
        await settle()
        assert not waiting.admitted.is_set()
        reservation.use(1)
        await asyncio.wait_for(waiting.admitted.wait(), LOADED_MACHINE_S)
        assert answers.used == SHARE
    await waiting.release()
    assert answers.used == 0


async def test_a_wait_that_takes_too_long_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_S", 0.01)
    answers = Answers(TOTAL, SHARE)
    async with answers.reserve("n", SHARE):
        with pytest.raises(ResourceExhausted, match="Read responses as they arrive") as refusal:
            async with answers.reserve("n", 1):
                pytest.fail("there was no room")
    assert refusal.value.metadata["limit"] == "answers_bytes"
    assert answers.used == 0


async def test_who_goes_away_leaves_no_trace() -> None:
    answers = Answers(TOTAL, SHARE)
    async with answers.reserve("n", SHARE):
        gone = Holder(answers, "n")
        await settle()
        gone.task.cancel()
        await asyncio.gather(gone.task, return_exceptions=True)
    assert answers.used == 0
    async with answers.reserve("n", SHARE):
        assert answers.used == SHARE


async def test_who_is_cancelled_at_that_moment_takes_nothing() -> None:
    """Its task has not run since: its share goes to the next."""
    answers = Answers(TOTAL, SHARE)
    async with answers.reserve("n", SHARE):
        gone, last = Holder(answers, "n"), Holder(answers, "n")
        await settle()
        gone.task.cancel()
    await asyncio.wait_for(last.admitted.wait(), LOADED_MACHINE_S)
    await last.release()
    assert gone.task.cancelled()
    assert answers.used == 0

"""A child whose version has to be looked up holds back its own run and nothing else of the worker's stream."""

import asyncio
from typing import Any

import pytest

from kagzi.core import limits
from kagzi.core.error_details import ErrorCode
from kagzi.core.records import ClaimedRun, Payload, RunKey
from kagzi.core.run.commands import BeginStep, Command, ContinueAsNew, StartChild, StartRun
from kagzi.core.run.outcomes import Begun, ChildStarted, Outcome, Refused, RunClosed
from kagzi.engine import Engine, Session
from tests.engine.fakes import TIMEOUT_S, Barrier, RecordingOutlet, TroubledStore, complete, leased, start, worker


def child(run: ClaimedRun, step: str, **fields: Any) -> StartChild:
    kid = StartRun(
        run=RunKey("default", ""),
        workflow_id=f"{run.run.run_id}/{step}",
        workflow_type="child",
        request_id="",
        input=None,
    )
    return StartChild(run=run.run, lease=run.lease, step_id=step, name=step, start=kid, **fields)


def begin(run: ClaimedRun, step: str) -> BeginStep:
    return BeginStep(run=run.run, lease=run.lease, step_id=step, name=step)


def carry_on(run: ClaimedRun, step: str) -> ContinueAsNew:
    return ContinueAsNew(run=run.run, lease=run.lease, new_run_id="", input=Payload(b"1"))


class InOrder(RecordingOutlet):
    def __init__(self) -> None:
        super().__init__()
        self.order: list[int] = []

    def answers(self, answers: Any) -> None:
        self.order.extend(number for number, _ in answers)
        super().answers(answers)


@pytest.fixture
async def deferred(engine: Engine, store: TroubledStore) -> tuple[Session, InOrder, list[ClaimedRun], Barrier]:
    """A worker with two runs, and a store that keeps the look-up of versions waiting."""
    for _ in range(2):
        await engine.runs.start(start())
    outlet = InOrder()
    session = await engine.sessions.open(worker("hello", "child"), (), outlet)
    runs = list(await outlet.until_received(2))
    engine.versions.forget_all()
    barrier = store.before["versions_of"] = Barrier()
    return session, outlet, runs, barrier


@pytest.mark.parametrize("starting", [child, carry_on])
async def test_other_runs_and_heartbeats_are_not_delayed(
    deferred: tuple[Session, InOrder, list[ClaimedRun], Barrier], store: TroubledStore, starting: Any
) -> None:
    session, outlet, (blocked, free), barrier = deferred
    await asyncio.wait_for(session.submit([(1, starting(blocked, "kid")), (2, begin(free, "a"))]), TIMEOUT_S)
    await barrier.arrived.wait()
    renewals = store.calls["renew"]
    await asyncio.wait_for(session.heartbeat([leased(blocked), leased(free)]), TIMEOUT_S)
    assert store.calls["renew"] == renewals + 1
    await asyncio.wait_for(session.submit([(3, complete(free))]), TIMEOUT_S)
    assert isinstance(await outlet.answer_to(3), RunClosed)
    assert outlet.order == [2, 3]
    barrier.open()
    assert isinstance(await outlet.answer_to(1), ChildStarted | RunClosed)


async def test_the_operations_of_the_run_keep_their_order(
    deferred: tuple[Session, InOrder, list[ClaimedRun], Barrier], store: TroubledStore
) -> None:
    session, outlet, (run, _), barrier = deferred
    kids, calls_before = 20, store.calls["versions_of"]
    first: list[tuple[int, Command]] = [(number, child(run, f"kid-{number}")) for number in range(kids)]
    await session.submit([*first, (kids, begin(run, "a"))])
    await session.submit([(kids + 1, begin(run, "b"))])
    await barrier.arrived.wait()
    assert outlet.order == []
    written = len(store.batches)
    barrier.open()
    await session.submit([(kids + 2, begin(run, "c"))])
    await outlet.answer_to(kids + 2)
    assert outlet.order == list(range(kids + 3))
    assert all(isinstance(outlet.answered[number], ChildStarted) for number in range(kids))
    assert isinstance(outlet.answered[kids + 1], Begun)
    assert len(store.batches) - written <= 3, "they were not written together"
    assert store.calls["versions_of"] - calls_before <= 1


async def test_goodbye_waits_for_deferred_operations(
    deferred: tuple[Session, InOrder, list[ClaimedRun], Barrier],
) -> None:
    session, outlet, (run, _), barrier = deferred
    await session.submit([(1, child(run, "kid")), (2, complete(run))])
    leaving = asyncio.ensure_future(session.goodbye())
    await barrier.arrived.wait()
    barrier.open()
    await leaving
    assert isinstance(outlet.answered[2], RunClosed)


async def test_a_session_that_is_over_says_nothing_more(
    deferred: tuple[Session, InOrder, list[ClaimedRun], Barrier], store: TroubledStore
) -> None:
    """Its worker has repeated it elsewhere: what came late would be out of order there."""
    session, _, (run, _), barrier = deferred
    await session.submit([(1, child(run, "kid")), (2, complete(run))])
    await barrier.arrived.wait()
    await session.close()
    written = len(store.batches)
    barrier.open()
    while run.run.run_id in session._deferred.waiting:  # noqa: ASYNC110  nobody is told
        await asyncio.sleep(0)
    assert len(store.batches) == written


async def test_an_operation_whose_version_cannot_be_read_is_refused_with_what_follows(
    deferred: tuple[Session, InOrder, list[ClaimedRun], Barrier], store: TroubledStore, engine: Engine
) -> None:
    session, outlet, (run, other), barrier = deferred
    await session.submit([(1, child(run, "kid")), (2, complete(run)), (3, begin(other, "a"))])
    await outlet.answer_to(3)
    await barrier.arrived.wait()
    store.away = True
    engine.versions.stop()
    barrier.open()
    outcomes: list[Outcome] = [await outlet.answer_to(number) for number in (1, 2)]
    store.away = False
    for outcome in outcomes:
        assert isinstance(outcome, Refused)
        assert outcome.error.code is ErrorCode.UNAVAILABLE


async def test_no_more_than_a_batch_waits(deferred: tuple[Session, InOrder, list[ClaimedRun], Barrier]) -> None:
    session, outlet, (run, _), barrier = deferred
    many = limits.BATCH_OPERATIONS + 1
    submitting = asyncio.ensure_future(session.submit([(number, child(run, f"{number}")) for number in range(many)]))
    await barrier.arrived.wait()
    assert not submitting.done(), "the stream would be read on"
    barrier.open()
    await submitting
    await outlet.answer_to(many - 1)
    assert len(session._deferred.waiting) == 0
    assert session._deferred._bytes == 0

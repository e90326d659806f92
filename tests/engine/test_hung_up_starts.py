"""A caller that hangs up in the middle of a start takes nothing away: every slot it reserved is offered again, or has a
run."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kagzi.core.errors import ResourceExhausted
from kagzi.core.records import Payload
from kagzi.core.run.commands import SendSignal
from kagzi.engine import Engine, Session
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import RecordingOutlet, TroubledStore, complete, start, worker

SLOTS = 50
TYPES = ("one", "two", "three")
NAMESPACES = ("default", "other")

Starting = Callable[[Engine], Coroutine[Any, Any, object]]


def batch(engine: Engine) -> Coroutine[Any, Any, object]:
    requests = [start(kind, namespace=namespace) for namespace in NAMESPACES for kind in TYPES for _ in range(2)]
    return engine.runs.start_many(requests)


def single(engine: Engine) -> Coroutine[Any, Any, object]:
    return engine.runs.start(start("two"))


def signalled(engine: Engine) -> Coroutine[Any, Any, object]:
    signal = SendSignal(name="go", payload=Payload(b"1"), request_id="")
    return engine.runs.signal_with_start(start("two", workflow_id="signalled"), signal)


async def idle_worker(engine: Engine, namespace: str) -> tuple[Session, RecordingOutlet]:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker(*TYPES, slots=SLOTS, namespace=namespace), (), outlet)
    await engine._matcher.next_round()
    return session, outlet


async def finish(session: Session, outlet: RecordingOutlet) -> None:
    """Everything it was given, so that it is idle again."""
    while outlet.claimed_runs:
        run = outlet.claimed_runs.pop()
        number = len(outlet.answered)
        await session.submit([(number, complete(run))])
        await outlet.answer_to(number)


class Cancellable:
    """A call that can be cut after any number of turns of the loop."""

    def __init__(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self._task = asyncio.ensure_future(coroutine)

    async def cancel_after(self, steps: int) -> bool:
        """Whether it was cut; else it had ended before."""
        for _ in range(steps):
            await asyncio.sleep(0)
            if self._task.done():
                break
        was_cancelled = self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        return was_cancelled


@pytest.mark.parametrize("starting", [batch, single, signalled])
async def test_a_start_that_is_hung_up_at_any_await_leaves_all_slots(
    make_engine: MakeEngine, store: TroubledStore, starting: Starting
) -> None:
    engine = make_engine(poll_interval_ms=600_000)
    await engine.start()

    async def slowly() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    workers = [await idle_worker(engine, namespace) for namespace in NAMESPACES]
    store.before["versions_of"] = slowly
    store.before["get_namespace"] = slowly
    cancellations = 0
    for steps in range(150):
        engine.versions.forget_all()  # so that each start asks the store, and can be cut there
        cancellations += await Cancellable(starting(engine)).cancel_after(steps)
        await engine._journal._idle.wait()
        for session, outlet in workers:
            assert session.offerable() + len(session.leased) == SLOTS, f"cut after {steps} steps"
            assert not session._reserved, f"cut after {steps} steps"
            await finish(session, outlet)
    assert cancellations >= 20 if starting is batch else cancellations >= 3, (
        "hardly anything was cut: this shows nothing"
    )
    assert not engine._matcher._assigned
    session, outlet = workers[0]
    started = await engine.runs.start(start("one"))
    assert [run.run.run_id for run in await outlet.until_received(1)] == [started.run_id]


async def test_a_start_that_the_journal_does_not_take_leaves_all_slots(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, outlet = await idle_worker(engine, "default")

    def full(*_: object) -> None:
        raise ResourceExhausted("full")

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(engine._journal, "submit_many", full)
        assert all(isinstance(each, ResourceExhausted) for each in await engine.runs.start_many([start("one")] * 7))
        with pytest.raises(ResourceExhausted):
            await engine.runs.start(start("one"))
        patch.setattr(engine._journal, "submit_many", broken)
        for starting in (engine.runs.start_many([start("one")] * 7), engine.runs.start(start("one"))):
            with pytest.raises(RuntimeError):
                await starting
    assert session.offerable() == SLOTS
    await engine.runs.start(start("one"))
    assert len(await outlet.until_received(1)) == 1

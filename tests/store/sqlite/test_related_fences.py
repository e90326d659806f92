"""What the writer knows by heart stays true when runs wait for signals and for each other, and when people step in.

As in test_fences: a store that remembers, one that forgets and one that looks at each command alone must not differ.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import count

import pytest

from kagzi.core.records import Held, Lease, RunKey
from kagzi.core.run.commands import Command, StartChild, StartRun
from kagzi.core.run.outcomes import Begun, NotParked, Parked, Refused, RunClosed
from kagzi.core.states import RunStatus
from kagzi.store.sqlite import SqliteStore
from tests.store.conformance.invariants import check_invariants
from tests.store.conformance.verbs import (
    AT_ONCE,
    Cellar,
    acknowledge_cancel,
    ask,
    beat,
    begin,
    complete,
    complete_run,
    diverged,
    fail,
    fail_run,
    finish,
    go_on_as,
    hand_back,
    held,
    park,
    patch,
    race,
    refused,
    say_status,
    sleep,
    the,
    wait_signal,
)
from tests.support.clock import FakeClock
from tests.support.seams import CountingIds, LoadedDice

from .test_fences import forgetting, looking, remembering

STEPS = ("a", "b", "nap", "child", "approved", "race")


@pytest.fixture
async def cellars() -> AsyncIterator[list[Cellar]]:
    cellars: list[Cellar] = []
    for _ in range(3):
        store = SqliteStore(":memory:", dice=LoadedDice())
        await store.open()
        cellars.append(Cellar(store, FakeClock(), CountingIds()))
    yield cellars
    for cellar in cellars:
        await cellar.store.close()


@pytest.fixture
def cellar(cellars: list[Cellar]) -> Cellar:
    return cellars[0]


def child_of(parent: Held, number: int, step_id: str, *, attach: bool) -> StartChild:
    """Ids come again now and then, so that some are taken."""
    start = StartRun(
        run=RunKey("default", f"run-{number:05}"),
        workflow_id=f"child-{number % 7}",
        workflow_type="hello",
        request_id=f"{parent.run.run_id}/{step_id}",
    )
    return StartChild(
        run=parent.run, lease=parent.lease, step_id=step_id, name="hello", start=start, attach=attach, on_close="cancel"
    )


def commands_for(dice: random.Random, holding: Held, numbers: Iterator[int]) -> list[Command]:
    lease = Lease(max(1, holding.lease.counter - dice.choice((0, 0, 0, 0, 0, 1))), holding.lease.nonce)
    one = Held(holding.run, lease)
    step, other, cleanup = dice.choice(STEPS), dice.choice(STEPS), dice.random() < 0.5
    choices: list[Callable[[], list[Command]]] = [
        lambda: [begin(one, step, 0, retry=dice.choice((None, AT_ONCE)), cleanup=cleanup), complete(one, step, "x", 0)],
        lambda: [begin(one, step, cleanup=cleanup)],
        lambda: [fail(one, step, attempt=0)],
        lambda: [sleep(one, step, s=dice.choice((0, 1, 5)), cleanup=cleanup), finish(one, step)],
        lambda: [wait_signal(one, step_id=step, s=dice.choice((None, 2)), cleanup=cleanup)],
        lambda: [child_of(one, next(numbers), step, attach=dice.random() < 0.5)],
        lambda: [race(one, step, dice.choice(("x", "y")), other)],
        lambda: [patch(one, step)],
        lambda: [say_status(one, step, 0.5)],
        lambda: [beat(one, step, "half", 0)],
        lambda: [park(one, known_seq=dice.choice((0, 1_000_000)))],
        lambda: [ask(one)],
        lambda: [complete_run(one)],
        lambda: [fail_run(one)],
        lambda: [hand_back(one)],
        lambda: [acknowledge_cancel(one)],
        lambda: [diverged(one)],
        lambda: [go_on_as(one, f"next-{next(numbers):05}")],
    ]
    weights = (5, 3, 3, 3, 5, 6, 2, 2, 1, 1, 5, 2, 2, 1, 1, 1, 1, 1)
    return dice.choices(choices, weights)[0]()


def interference(dice: random.Random, run: RunKey) -> Callable[[Cellar], Awaitable[object]]:
    step, token = dice.choice(STEPS), str(dice.random())
    return dice.choice(
        [
            lambda cellar: cellar.store.signal_run(
                run.namespace, run_id=run.run_id, signal=cellar.signal_given(request_id=token), now=cellar.now
            ),
            lambda cellar: cellar.store.signal_run(
                run.namespace, run_id=run.run_id, signal=cellar.signal_given(request_id=token), now=cellar.now
            ),
            lambda cellar: cellar.cancel(run),
            lambda cellar: cellar.pause(run),
            lambda cellar: cellar.resume(run),
            lambda cellar: cellar.retry(run, step, token),
            lambda cellar: cellar.retry(run, "", token),
            lambda cellar: cellar.new_build("build-2"),
            lambda cellar: cellar.terminate(run),
            lambda cellar: cellar.cascade(limit=2),
        ]
    )


async def same(cellars: list[Cellar], act: Callable[[Cellar], Awaitable[object]]) -> object:
    answers = [await act(cellar) for cellar in cellars]
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


@pytest.mark.parametrize("seed", range(12))
async def test_memory_makes_no_difference_to_families(cellars: list[Cellar], seed: int) -> None:
    dice, numbers = random.Random(seed), count()
    for _ in range(4):
        await same(cellars, lambda cellar: cellar.start(retry=AT_ONCE))
    holdings: dict[str, Held] = {}
    for _ in range(60):
        claimed = [await cellar.claim(limit=4) for cellar in cellars]
        assert claimed[0] == claimed[1] == claimed[2]
        holdings |= {one.run.run_id: held(one) for one in claimed[0]}
        if not holdings:
            break
        batch = [
            command for _ in range(6) for command in commands_for(dice, dice.choice(list(holdings.values())), numbers)
        ]
        outcomes = [
            list(await how(cellar, batch))
            for how, cellar in zip((remembering, forgetting, looking), cellars, strict=True)
        ]
        assert outcomes[0] == outcomes[1] == outcomes[2], batch
        if dice.random() < 0.5:
            await same(cellars, interference(dice, RunKey("default", dice.choice(list(holdings)))))
        for cellar in cellars:
            cellar.clock.advance(s=1)
        await same(cellars, lambda cellar: cellar.fire(claim_cap=3))
    pictures = [await pictures_of(cellar, list(holdings.values())) for cellar in cellars]
    assert pictures[0] == pictures[1] == pictures[2]
    await same(cellars, lambda cellar: cellar.cascade())
    await same(cellars, lambda cellar: cellar.runs())


async def pictures_of(cellar: Cellar, holdings: Sequence[Held]) -> object:
    return [await cellar.picture(holding.run) for holding in holdings]


async def test_a_cancellation_is_known_to_the_writer_at_once(cellar: Cellar) -> None:
    holding = await cellar.running()
    the(Begun, await cellar.do(begin(holding, "a")))
    await cellar.cancel(holding.run)
    refusal = the(Refused, await cellar.do(begin(holding, "b")))
    assert refusal.error.code == "cancelled"
    the(Begun, await cellar.do(begin(holding, "c", cleanup=True)))


async def test_a_signal_for_a_held_run_takes_no_seq_twice(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(wait_signal(holding))
    for n in range(3):
        await cellar.done(holding, f"before-{n}")
        assert (await cellar.signal(holding.run, "approved" if n == 0 else "other")).delivered is (n == 0)
        await cellar.done(holding, f"after-{n}")
    await check_invariants(cellar.store)
    found = the(NotParked, await cellar.do(park(holding, known_seq=2)))
    assert "approved" in {step.step_id for step in found.results}


async def test_a_parent_and_its_children_in_one_batch(cellar: Cellar) -> None:
    parent = await cellar.running()
    children = [await cellar.child(parent, f"c{n}") for n in range(3)]
    first, second, third = [await cellar.hold(child, limit=1) for child in children]
    await cellar.do(begin(parent, "a"))
    outcomes = await cellar.write(
        complete(parent, "a"),
        complete_run(first),
        begin(parent, "b"),
        complete(parent, "b"),
        complete_run(second),
        park(parent),
        complete_run(third),
    )
    stirred = [outcome.stirred for outcome in outcomes if isinstance(outcome, RunClosed)]
    assert [[one.holder for one in each] for each in stirred] == [[parent.lease], [parent.lease], [None]]
    assert the(Parked, outcomes[5]).wake_at is None
    assert (await cellar.run(parent.run)).status == RunStatus.PENDING
    await check_invariants(cellar.store)


async def test_a_run_that_somebody_attached_to_after_its_claim_tells_its_end(cellar: Cellar) -> None:
    shared = await cellar.running(workflow_id="shared", workflow_type="child")
    await cellar.done(shared, "a")
    parent = await cellar.running()
    await cellar.do(cellar.child_command(parent, workflow_id="shared", attach=True))
    closed = the(RunClosed, await cellar.do(complete_run(shared)))
    assert [one.run for one in closed.stirred] == [parent.run]


async def test_a_start_of_a_child_that_fails_leaves_no_memory_of_it(cellar: Cellar) -> None:
    parent = await cellar.running()
    command = cellar.child_command(parent, assignment=cellar.assignment(), labels={"bad": "\0"})
    refused(await cellar.do(command), "invalid_argument")
    assert isinstance(cellar.store, SqliteStore)
    assert cellar.store._writer is not None
    assert cellar.store._writer.fences.get(command.start.run.run_id) is None
    child = await cellar.child(parent, "child", assignment=cellar.assignment())
    assert (await cellar.run(child)).status == RunStatus.RUNNING


async def test_runs_without_relatives_end_without_a_look(cellar: Cellar) -> None:
    holdings = [await cellar.running() for _ in range(64)]
    before = cellar.store.statements
    await cellar.write(*(command for one in holdings for command in (patch(one, "p"), complete_run(one))))
    assert cellar.store.statements - before <= 4  # the rows of the history and one update of the runs

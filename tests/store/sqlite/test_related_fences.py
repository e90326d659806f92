"""What the writer knows by heart stays true when runs wait for signals and for each other, and when people step in.

As in test_fences: a store that remembers, one that forgets and one that looks at each command alone must not differ.
"""

import random
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import pytest

from kagzi.core.records import Lease, RunKey, RunLease
from kagzi.core.run.commands import Command, StartChild, StartRun
from kagzi.core.run.outcomes import Begun, NotParked, Parked, Refused, RunClosed
from kagzi.core.states import RunStatus
from kagzi.store.sqlite import SqliteStore
from tests.store.conformance.invariants import check_invariants
from tests.store.conformance.verbs import (
    AT_ONCE,
    StoreHarness,
    acknowledge_cancel,
    beat,
    begin,
    complete,
    complete_run,
    continue_as,
    diverged,
    fail,
    fail_run,
    fetch,
    finish,
    hand_back,
    leased,
    park,
    patch,
    race,
    refused,
    say_status,
    sleep,
    the,
    wait_signal,
)

from .test_fences import forgetting, looking, picture, remembering

STEPS = ("a", "b", "nap", "child", "approved", "race")


@pytest.fixture
def harness(harnesses: list[StoreHarness]) -> StoreHarness:
    return harnesses[0]


def child_of(parent: RunLease, number: int, step_id: str, *, attach: bool) -> StartChild:
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


def commands_for(rng: random.Random, holding: RunLease, numbers: Iterator[int]) -> list[Command]:
    lease = Lease(max(1, holding.lease.counter - rng.choice((0, 0, 0, 0, 0, 1))), holding.lease.nonce)
    one = RunLease(holding.run, lease)
    step, other, cleanup = rng.choice(STEPS), rng.choice(STEPS), rng.random() < 0.5
    choices: list[Callable[[], list[Command]]] = [
        lambda: [begin(one, step, 0, retry=rng.choice((None, AT_ONCE)), cleanup=cleanup), complete(one, step, "x", 0)],
        lambda: [begin(one, step, cleanup=cleanup)],
        lambda: [fail(one, step, attempt=0)],
        lambda: [sleep(one, step, s=rng.choice((0, 1, 5)), cleanup=cleanup), finish(one, step)],
        lambda: [wait_signal(one, step_id=step, s=rng.choice((None, 2)), cleanup=cleanup)],
        lambda: [child_of(one, next(numbers), step, attach=rng.random() < 0.5)],
        lambda: [race(one, step, rng.choice(("x", "y")), other)],
        lambda: [patch(one, step)],
        lambda: [say_status(one, step, 0.5)],
        lambda: [beat(one, step, "half", 0)],
        lambda: [park(one, known_seq=rng.choice((0, 1_000_000)))],
        lambda: [fetch(one)],
        lambda: [complete_run(one)],
        lambda: [fail_run(one)],
        lambda: [hand_back(one)],
        lambda: [acknowledge_cancel(one)],
        lambda: [diverged(one)],
        lambda: [continue_as(one, f"next-{next(numbers):05}")],
    ]
    weights = (5, 3, 3, 3, 5, 6, 2, 2, 1, 1, 5, 2, 2, 1, 1, 1, 1, 1)
    return rng.choices(choices, weights)[0]()


def interference(rng: random.Random, run: RunKey) -> Callable[[StoreHarness], Awaitable[object]]:
    step, token = rng.choice(STEPS), str(rng.random())
    return rng.choice(
        [
            lambda harness: harness.store.signal_run(
                run.namespace, run_id=run.run_id, signal=harness.signal_request(request_id=token), now=harness.now
            ),
            lambda harness: harness.store.signal_run(
                run.namespace, run_id=run.run_id, signal=harness.signal_request(request_id=token), now=harness.now
            ),
            lambda harness: harness.cancel(run),
            lambda harness: harness.pause(run),
            lambda harness: harness.resume(run),
            lambda harness: harness.retry(run, step, token),
            lambda harness: harness.retry(run, "", token),
            lambda harness: harness.new_build("build-2"),
            lambda harness: harness.terminate(run),
            lambda harness: harness.cascade(limit=2),
        ]
    )


async def same(harnesses: list[StoreHarness], act: Callable[[StoreHarness], Awaitable[object]]) -> object:
    answers = [await act(harness) for harness in harnesses]
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


@pytest.mark.parametrize("seed", range(12))
async def test_memory_makes_no_difference_to_parents_and_children(harnesses: list[StoreHarness], seed: int) -> None:
    rng, numbers = random.Random(seed), count()
    for _ in range(4):
        await same(harnesses, lambda harness: harness.start(retry=AT_ONCE))
    holdings: dict[str, RunLease] = {}
    for _ in range(60):
        claimed = [await harness.claim(limit=4) for harness in harnesses]
        assert claimed[0] == claimed[1] == claimed[2]
        holdings |= {one.run.run_id: leased(one) for one in claimed[0]}
        if not holdings:
            break
        batch = [
            command for _ in range(6) for command in commands_for(rng, rng.choice(list(holdings.values())), numbers)
        ]
        outcomes = [
            list(await how(harness, batch))
            for how, harness in zip((remembering, forgetting, looking), harnesses, strict=True)
        ]
        assert outcomes[0] == outcomes[1] == outcomes[2], batch
        if rng.random() < 0.5:
            await same(harnesses, interference(rng, RunKey("default", rng.choice(list(holdings)))))
        for harness in harnesses:
            harness.clock.advance(s=1)
        await same(harnesses, lambda harness: harness.fire(claim_cap=3))
    pictures = [await picture(harness, list(holdings.values())) for harness in harnesses]
    assert pictures[0] == pictures[1] == pictures[2]
    await same(harnesses, lambda harness: harness.cascade())
    await same(harnesses, lambda harness: harness.runs())


async def test_a_cancellation_is_known_to_the_writer_at_once(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "a")))
    await harness.cancel(holding.run)
    refusal = the(Refused, await harness.do(begin(holding, "b")))
    assert refusal.error.code == "cancelled"
    the(Begun, await harness.do(begin(holding, "c", cleanup=True)))


async def test_a_signal_for_a_leased_run_takes_no_seq_twice(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding))
    for n in range(3):
        await harness.done(holding, f"before-{n}")
        assert (await harness.signal(holding.run, "approved" if n == 0 else "other")).delivered is (n == 0)
        await harness.done(holding, f"after-{n}")
    await check_invariants(harness.store)
    outcome = the(NotParked, await harness.do(park(holding, known_seq=2)))
    assert "approved" in {step.step_id for step in outcome.results}


async def test_a_parent_and_its_children_in_one_batch(harness: StoreHarness) -> None:
    parent = await harness.running()
    children = [await harness.child(parent, f"c{n}") for n in range(3)]
    first, second, third = [await harness.hold(child, limit=1) for child in children]
    await harness.do(begin(parent, "a"))
    outcomes = await harness.write(
        complete(parent, "a"),
        complete_run(first),
        begin(parent, "b"),
        complete(parent, "b"),
        complete_run(second),
        park(parent),
        complete_run(third),
    )
    assert harness.effects.changed == (parent.run,)
    assert harness.effects.pending == (("default", "hello"),)
    assert [notice.leased for notice in harness.effects.notices] == [parent]
    assert the(Parked, outcomes[5]).wake_at is None
    assert (await harness.run(parent.run)).status == RunStatus.PENDING
    await check_invariants(harness.store)


async def test_a_run_that_somebody_attached_to_after_its_claim_reports_its_end(harness: StoreHarness) -> None:
    shared = await harness.running(workflow_id="shared", workflow_type="child")
    await harness.done(shared, "a")
    parent = await harness.running()
    await harness.do(harness.child_command(parent, workflow_id="shared", attach=True))
    the(RunClosed, await harness.do(complete_run(shared)))
    assert harness.effects.changed == (parent.run,)


async def test_a_start_of_a_child_that_fails_leaves_no_memory_of_it(harness: StoreHarness) -> None:
    parent = await harness.running()
    command = harness.child_command(parent, assignment=harness.assignment(), labels={"bad": "\0"})
    refused(await harness.do(command), "invalid_argument")
    assert isinstance(harness.store, SqliteStore)
    assert harness.store._writer is not None
    assert harness.store._writer.fences.get(command.start.run.run_id) is None
    child = await harness.child(parent, "child", assignment=harness.assignment())
    assert (await harness.run(child)).status == RunStatus.RUNNING


async def test_runs_without_relatives_end_without_a_read(harness: StoreHarness) -> None:
    holdings = [await harness.running() for _ in range(64)]
    before = harness.store.statements
    await harness.write(*(command for one in holdings for command in (patch(one, "p"), complete_run(one))))
    assert harness.store.statements - before <= 4  # the rows of the history and one update of the runs

"""A run that ends with unread signals: those that came by signal-with-start go to the run that comes next, in
order and once; the others are counted. However the run ends, on every store."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kagzi.core.limits import CLEANUP_MS
from kagzi.core.records import NamespaceRecord, RunKey, RunLease, RunRecord
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import SendSignal, StartRequest, StartRun, start_run
from kagzi.core.run.outcomes import Existing, RunClosed, SignalBound, Started, TimerSet
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.store.protocol import TypeKey

from .invariants import check_invariants
from .test_replacements import change
from .test_transfers import brought, exported, third
from .verbs import (
    StoreHarness,
    acknowledge_cancel,
    begin,
    by_id,
    complete,
    complete_run,
    continue_as,
    fail_run,
    hand_back,
    leased,
    payload,
    the,
    wait_signal,
)

__all__ = ["third"]

S = RunStatus
CART = "cart"


def signal_with_start(
    harness: StoreHarness, value: str, *, workflow_id: str = CART, workflow_type: str = "hello", **options: Any
) -> StartRun:
    """Its start has an input of its own: `start of <value>`."""
    request = StartRequest(
        namespace="default",
        workflow_type=workflow_type,
        workflow_id=workflow_id,
        request_id=f"request-{value}",
        input=payload(f"start of {value}"),
        **options,
    )
    signal = SendSignal(name="item", payload=payload(value), request_id=f"request-{value}", start=request)
    run = RunKey("default", harness.ids.run_id(harness.now))
    return start_run(request, run, harness.now, signal=signal)


def run_of(outcome: object) -> str:
    """The run that the caller gets, whether it is new or not."""
    if isinstance(outcome, Started | Existing):
        return outcome.run_id
    raise AssertionError(outcome)


async def send(harness: StoreHarness, *values: str, **options: Any) -> None:
    for value in values:
        run_of(await harness.do(signal_with_start(harness, value, **options)))


async def plain(harness: StoreHarness, run: RunKey, value: str) -> None:
    await harness.signal(run, "item", value)


async def receive(harness: StoreHarness, holding: RunLease, number: int) -> list[str]:
    """The next signals, as the code of the run receives them."""
    done = len(await harness.steps(holding.run))
    waits = (wait_signal(holding, "item", step_id=f"item#{done + n}") for n in range(1, number + 1))
    outcomes = [await harness.insist(wait) for wait in waits]
    return [outcome.payload.data.decode() for outcome in outcomes if isinstance(outcome, SignalBound)]


async def open_run(harness: StoreHarness, workflow_id: str = CART) -> RunRecord:
    await check_invariants(harness.store)
    record = await harness.store.get_run("default", workflow_id=workflow_id)
    assert record is not None
    assert not record.status.ended, record
    return record


async def entity(harness: StoreHarness, **options: Any) -> RunLease:
    """An open run that has read 0 of the signals 0, 1, x, 2, 3; x did not come by signal-with-start."""
    holding = await harness.running(workflow_id=CART, **options)
    await send(harness, "0", "1")
    await plain(harness, holding.run, "x")
    await send(harness, "2", "3")
    assert await receive(harness, holding, 1) == ["0"]
    return holding


# --- every way to end -------------------------------------------------------------------------------------------------

End = Callable[[StoreHarness, RunLease], Awaitable[object]]


async def completes(harness: StoreHarness, holding: RunLease) -> None:
    the(RunClosed, await harness.do(complete_run(holding)))


async def completes_with_a_step(harness: StoreHarness, holding: RunLease) -> None:
    await harness.write(begin(holding, "last"), complete(holding, "last"), complete_run(holding))


async def completes_in_a_crowd(harness: StoreHarness, holding: RunLease) -> None:
    others = [await harness.running() for _ in range(3)]
    await harness.write(*(complete_run(each) for each in (*others, holding)))


async def fails(harness: StoreHarness, holding: RunLease) -> None:
    the(RunClosed, await harness.do(fail_run(holding)))


async def is_cancelled_and_cleans_up(harness: StoreHarness, holding: RunLease) -> None:
    await harness.cancel(holding.run)
    the(RunClosed, await harness.do(acknowledge_cancel(holding)))


async def is_cancelled_and_does_not_clean_up(harness: StoreHarness, holding: RunLease) -> None:
    await harness.cancel(holding.run)
    harness.clock.advance(s=CLEANUP_MS / 1_000 + 1)
    await harness.fire()


async def is_terminated(harness: StoreHarness, holding: RunLease) -> None:
    await harness.terminate(holding.run)


async def is_terminated_after_its_worker_left(harness: StoreHarness, holding: RunLease) -> None:
    await harness.do(hand_back(holding))
    await harness.terminate(holding.run)


async def misses_its_deadline(harness: StoreHarness, holding: RunLease) -> None:
    harness.clock.advance(s=60)
    await harness.fire(end_leases=False)


WAYS_TO_END = [
    completes,
    completes_with_a_step,
    completes_in_a_crowd,
    fails,
    is_cancelled_and_cleans_up,
    is_cancelled_and_does_not_clean_up,
    is_terminated,
    is_terminated_after_its_worker_left,
    misses_its_deadline,
]


@pytest.mark.parametrize("end", WAYS_TO_END)
async def test_the_next_run_gets_what_came_by_signal_with_start(harness: StoreHarness, end: End) -> None:
    deadline_at = harness.now + 30 * US_PER_S if end is misses_its_deadline else None
    old = await entity(harness, deadline_at=deadline_at)
    await end(harness, old)
    ended = await harness.run(old.run)
    assert (ended.status.ended, ended.unread_signals) == (True, 1), "x stays, and is counted"
    following = await open_run(harness)
    assert ended.handed_on_to == following.run.run_id
    assert (following.status, following.unread_signals, following.input) == (S.PENDING, 3, payload("start of 1"))
    assert harness.effects.pending == (TypeKey("default", "hello"),), "workers are notified"
    [unread] = harness.effects.unread
    assert (unread.unread, unread.handed_on, unread.next_run_id) == (1, 3, following.run.run_id)
    holding = await harness.hold(following.run)
    assert await receive(harness, holding, 9) == ["1", "2", "3"]
    await harness.do(complete_run(holding))
    assert (await harness.run(following.run)).unread_signals == 0
    runs = await check_invariants(harness.store)
    assert all(run.status.ended for run in runs), "nothing is started once they are read"


async def test_a_run_that_was_never_claimed_hands_on_what_it_did_not_begin_with(harness: StoreHarness) -> None:
    await send(harness, "0", "1", "2")
    first = await open_run(harness)
    await harness.cancel(first.run)
    following = await open_run(harness)
    assert (await harness.run(first.run)).unread_signals == 1, "its own first signal has had its run"
    assert await receive(harness, await harness.hold(following.run), 9) == ["1", "2"]


async def test_a_child_that_is_cancelled_with_its_parent_hands_on(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent, workflow_id=CART)
    workflow_type = (await harness.run(child)).workflow_type
    await send(harness, "0", workflow_type=workflow_type)
    await harness.do(complete_run(parent))
    effects = await harness.cascade()
    assert (await harness.run(child)).status is S.CANCELLED
    assert [each.handed_on for each in effects.unread] == [1]
    following = await open_run(harness)
    assert following.parent_run_id is None, "it belongs to nobody"
    assert await receive(harness, await harness.hold(following.run, workflow_type=workflow_type), 9) == ["0"]


async def test_a_parent_that_waits_for_the_run_gets_its_result(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent, workflow_id=CART)
    workflow_type = (await harness.run(child)).workflow_type
    await send(harness, "0", workflow_type=workflow_type)
    await harness.do(complete_run(await harness.hold(child, workflow_type=workflow_type), "its result"))
    assert (await harness.steps(parent.run))["child"].output == payload("its result")
    assert (await open_run(harness)).run != child


@pytest.mark.parametrize("with_signal", [False, True])
async def test_a_run_that_replaces_it_gets_them(harness: StoreHarness, with_signal: bool) -> None:
    old = await entity(harness)
    if with_signal:
        command = signal_with_start(harness, "4", on_conflict="replace")
    else:
        command = harness.start_command(CART, on_conflict="replace")
    the(Started, await harness.do(command))
    following = await open_run(harness)
    assert following.run == command.run
    ended = await harness.run(old.run)
    assert (ended.unread_signals, ended.handed_on_to) == (1, following.run.run_id)
    assert [each.starts for each in harness.effects.unread] == [False]
    expected = ["1", "2", "3", "4"] if with_signal else ["1", "2", "3"]
    assert await receive(harness, await harness.hold(following.run), 9) == expected


async def test_a_run_that_is_tried_again_or_handed_back_has_not_ended(harness: StoreHarness) -> None:
    holding = await entity(harness, retry=RetryPolicy(maximum_attempts=2, initial_interval_ms=1, jitter=0))
    await harness.do(fail_run(holding))
    harness.clock.advance(s=60)
    await harness.fire()
    again = await harness.hold(holding.run)
    await harness.do(hand_back(again))
    for _ in range(10):
        holding = await harness.hold(holding.run)
        harness.clock.advance(s=60)
        await harness.fire()
    record = await open_run(harness)
    assert (record.run, record.status, record.unread_signals) == (holding.run, S.PAUSED, 4), (
        "a quarantined run has not ended"
    )


async def test_a_run_continued_as_new_keeps_them(harness: StoreHarness) -> None:
    old = await entity(harness)
    successor = RunKey("default", harness.ids.run_id(harness.now))
    await harness.do(continue_as(old, successor.run_id))
    assert (await open_run(harness)).run == successor
    holding = await harness.hold(successor)
    assert await receive(harness, holding, 2) == ["1", "x"]
    await harness.do(complete_run(holding))
    following = await open_run(harness)
    assert following.input == payload("start of 2")
    assert await receive(harness, await harness.hold(following.run), 9) == ["2", "3"]


# --- it comes to an end -----------------------------------------------------------------------------------------------


async def test_each_signal_starts_at_most_one_run(harness: StoreHarness) -> None:
    """A workflow that fails before it reads anything is not started for ever."""
    await send(harness, *"0123")
    for _ in range(4):
        record = await open_run(harness)
        harness.clock.advance(s=1)
        await harness.do(fail_run(await harness.hold(record.run)))
    runs = await check_invariants(harness.store)
    assert [(run.status, run.unread_signals) for run in runs] == [(S.FAILED, 1)] * 4
    assert [run.input for run in reversed([await harness.run(run.run) for run in runs])] == [
        payload(f"start of {n}") for n in range(4)
    ]


async def test_plain_signals_start_nothing(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id=CART)
    for n in range(3):
        await plain(harness, holding.run, f"{n}")
    await harness.do(complete_run(holding))
    [run] = await check_invariants(harness.store)
    assert (run.status, run.unread_signals, run.handed_on_to) == (S.COMPLETED, 3, None)
    [unread] = harness.effects.unread
    assert (unread.unread, unread.handed_on, unread.next_run_id) == (3, 0, None)


async def test_a_run_without_unread_signals_says_nothing(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id=CART)
    await send(harness, "0")
    await receive(harness, holding, 1)
    await harness.do(complete_run(holding))
    assert harness.effects.unread == ()
    assert len(await check_invariants(harness.store)) == 1


# --- repeats ----------------------------------------------------------------------------------------------------------


async def test_a_repeated_call_finds_the_run_that_has_the_signal(harness: StoreHarness) -> None:
    old = await entity(harness)
    await harness.do(complete_run(old))
    following = await open_run(harness)
    for value in ("0", "1", "2", "3"):
        has_it = old.run if value == "0" else following.run
        assert the(Existing, await harness.do(signal_with_start(harness, value))).run_id == has_it.run_id
    assert (await open_run(harness)).unread_signals == 3
    holding = await harness.hold(following.run)
    assert await receive(harness, holding, 9) == ["1", "2", "3"]
    await harness.do(complete_run(holding))
    for value in ("0", "1", "2", "3"):
        the(Existing, await harness.do(signal_with_start(harness, value)))
    assert len(await check_invariants(harness.store)) == 2, "they count once, also when all have ended"


async def test_a_repeated_end_starts_nothing_more(harness: StoreHarness) -> None:
    old = await entity(harness)
    first = await harness.do(complete_run(old))
    assert await harness.do(complete_run(old)) == first
    await harness.terminate(old.run)
    await harness.cancel(old.run)
    assert len(await check_invariants(harness.store)) == 2


async def test_another_run_may_have_the_request_id_by_then(harness: StoreHarness) -> None:
    old = await entity(harness)
    await harness.start("other", request_id="request-1")
    await harness.do(complete_run(old))
    following = await open_run(harness)
    assert await receive(harness, await harness.hold(following.run), 9) == ["1", "2", "3"]


# --- what starts it ---------------------------------------------------------------------------------------------------


async def test_the_next_run_is_what_the_call_asked_for(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id=CART)
    await send(
        harness,
        "0",
        priority=7,
        labels={"team": "blue"},
        concurrency_key="ada",
        version="3",
        timeout_us=90 * US_PER_S,
        context=payload('{"who":"ada"}'),
        retry=RetryPolicy(maximum_attempts=4),
    )
    harness.clock.advance(s=1_000)
    await harness.do(complete_run(old))
    run = await open_run(harness)
    assert (run.priority, run.labels, run.concurrency_key, run.version) == (7, {"team": "blue"}, "ada", "3")
    assert (run.context, run.retry) == (payload('{"who":"ada"}'), RetryPolicy(maximum_attempts=4))
    assert run.created_at == harness.now
    assert run.deadline_at == harness.now + 90 * US_PER_S, "the timeout counts from its own start"
    assert [each.run for each in await harness.runs(labels={"team": "blue"})] == [run.run]


async def test_a_delay_counts_from_the_end(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id=CART)
    await send(harness, "0", delay_us=90 * US_PER_S)
    harness.clock.advance(s=1_000)
    await harness.do(complete_run(old))
    run = await open_run(harness)
    assert (run.status, run.wake_at) == (S.SLEEPING, harness.now + 90 * US_PER_S)
    assert harness.effects.due == (run.wake_at,)


async def test_a_deadline_that_has_passed_fails_it(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id=CART)
    await send(harness, "0", deadline_at=harness.now + 10 * US_PER_S)
    await send(harness, "1")
    harness.clock.advance(s=1_000)
    await harness.do(complete_run(old))
    await harness.fire(end_leases=False)
    following = await open_run(harness)
    assert following.input == payload("start of 1"), "what came after it goes on"
    failed = [run for run in await check_invariants(harness.store) if run.status is S.FAILED]
    assert [run.unread_signals for run in failed] == [1]


async def test_without_a_version_it_has_that_of_the_run_that_ended(harness: StoreHarness) -> None:
    run = await harness.start(CART, version="5")
    old = await harness.hold(run, versions=("5",))
    await send(harness, "0")
    await harness.do(complete_run(old))
    assert (await open_run(harness)).version == "5"


async def test_nothing_refuses_it(harness: StoreHarness) -> None:
    """The namespace is full and disabled, its type is full: the signals were accepted before."""
    old = await entity(harness)
    await harness.store.put_type_limits("default", "hello", TypeLimits(max_running=1, when_full="reject"), harness.now)
    await harness.running(workflow_type="other")
    await harness.store.put_namespace(
        NamespaceRecord(namespace="default", enabled=False, open_runs_limit=1), harness.now
    )
    await harness.do(complete_run(old))
    assert (await open_run(harness)).unread_signals == 3


# --- other verbs ------------------------------------------------------------------------------------------------------


async def test_a_failed_run_can_be_retried_when_the_next_one_has_ended(harness: StoreHarness) -> None:
    old = await entity(harness)
    await harness.do(fail_run(old))
    following = await harness.hold((await open_run(harness)).run)
    await receive(harness, following, 3)
    await harness.do(complete_run(following))
    assert await harness.retry(old.run) is S.PENDING
    holding = await harness.hold(old.run)
    assert await receive(harness, holding, 9) == ["x"], "the others are elsewhere"


async def test_a_replaced_value_is_handed_on_and_a_dropped_one_is_not(harness: StoreHarness) -> None:
    old = await entity(harness)
    await change(harness, old.run, "instead of 1", "item")
    await receive(harness, old, 2)
    await change(harness, old.run, "instead of 2", "item")
    await harness.do(complete_run(old))
    following = await open_run(harness)
    assert await receive(harness, await harness.hold(following.run), 9) == ["instead of 2", "3"]


async def test_a_dropped_value_starts_nothing(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id=CART)
    await send(harness, "0")
    await change(harness, old.run, None, "item")
    await harness.do(complete_run(old))
    assert len(await check_invariants(harness.store)) == 1


async def test_a_value_that_a_step_has_is_not_handed_on(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id=CART)
    the(TimerSet, await harness.do(wait_signal(old, "item")))
    await send(harness, "0")
    await harness.do(complete_run(old))
    assert len(await check_invariants(harness.store)) == 1


@pytest.mark.parametrize("end", [complete_run, fail_run])
async def test_a_value_that_the_code_has_not_received_is_handed_on(
    harness: StoreHarness, end: Callable[..., Any]
) -> None:
    """The code returns while a wait is open that has just got its signal."""
    old = await harness.running(workflow_id=CART)
    the(TimerSet, await harness.do(wait_signal(old, "item")))
    await send(harness, "0", "1")
    the(RunClosed, await harness.do(end(old, open_waits=("item",))))
    following = await open_run(harness)
    assert following.input == payload("start of 0")
    assert await receive(harness, await harness.hold(following.run), 9) == ["0", "1"]


async def test_an_imported_run_hands_on_what_it_came_with(harness: StoreHarness, third: StoreHarness) -> None:
    old = await entity(harness)
    data = await exported(harness, old.run)
    await harness.terminate(old.run)
    await brought(third, data, "elsewhere")
    claimed = await third.claim_one(namespace="elsewhere")
    assert by_id(claimed.history.steps)["item#1"].output == payload("0")
    await third.do(complete_run(leased(claimed)))
    following = await third.claim_one(namespace="elsewhere")
    assert (following.workflow_id, following.input) == (CART, payload("start of 1"))
    assert await receive(third, leased(following), 9) == ["1", "2", "3"]
    again = await exported(third, claimed.run)
    assert following.run.run_id.encode() in again, "it tells where they are"


# --- two servers ------------------------------------------------------------------------------------------------------


async def test_ends_and_calls_of_two_servers_at_once(harness: StoreHarness, second_harness: StoreHarness) -> None:
    """Every signal is received once or left with a run that it started, whatever comes first."""
    received: list[str] = []
    sides = (harness, second_harness)

    async def sends(side: StoreHarness, values: list[str]) -> None:
        for value in values:
            run_of(await side.insist(signal_with_start(side, value)))
            await asyncio.sleep(0)

    async def works(side: StoreHarness, worker_id: str) -> None:
        while len(received) < 60:
            for claimed in await side.claim(worker_id=worker_id):
                holding = leased(claimed)
                await receive(side, holding, 2)
                the(RunClosed, await side.insist(complete_run(holding)))
                steps = sorted((await side.steps(holding.run)).values(), key=lambda step: step.seq)
                received.extend(step.output.data.decode() for step in steps if step.output is not None)
            await asyncio.sleep(0)

    values = [[f"{side}-{n}" for n in range(30)] for side in range(2)]
    async with asyncio.timeout(120):
        await asyncio.gather(
            *(sends(side, mine) for side, mine in zip(sides, values, strict=True)),
            *(works(side, f"worker-{n}") for n, side in enumerate(sides, start=1)),
        )
    assert sorted(received) == sorted(value for mine in values for value in mine)
    for mine in values:
        assert [value for value in received if value in mine] == mine, "each sender's are in order"
    runs = await check_invariants(harness.store)
    assert all(run.status.ended and run.unread_signals == 0 for run in runs)

"""What happened to a run is told in order, each thing once, from any number on."""

from kagzi.core.events import EventKind, RunEvent
from kagzi.core.records import Payload, RunKey
from kagzi.core.run.outcomes import Fetched, RetryScheduled, Started, TimerSet
from kagzi.core.states import RunStatus

from .verbs import (
    AT_ONCE,
    BOOM,
    StoreHarness,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
    fetch,
    hand_back,
    park,
    patch,
    race,
    say_status,
    sleep,
    the,
    wait_signal,
)

K = EventKind


async def events(harness: StoreHarness, run: RunKey, after: int = 0, limit: int = 1_000) -> list[RunEvent]:
    """All of them, page by page; each page goes on from the last number seen."""
    read: list[RunEvent] = []
    for _ in range(1_000):
        page = await harness.store.events_of(run, after, limit)
        assert page is not None
        assert len(page.events) <= limit
        read += page.events
        if not page.more:
            return read
        assert page.events
        after = page.events[-1].seq
    raise AssertionError("there is no end to it")


def summary(reported: list[RunEvent]) -> list[tuple[EventKind, str, int]]:
    return [(event.kind, event.step_id, event.attempt) for event in reported]


async def a_full_life(harness: StoreHarness) -> RunKey:
    holding = await harness.running()
    run = holding.run
    await harness.write(begin(holding, "a", name="A"), complete(holding, "a", "1"))
    await harness.do(begin(holding, "b", retry=AT_ONCE))
    the(RetryScheduled, await harness.do(fail(holding, "b")))
    await harness.do(begin(holding, "b", 2))
    the(TimerSet, await harness.do(sleep(holding, "nap", s=1)))
    the(TimerSet, await harness.do(wait_signal(holding, s=60)))
    the(TimerSet, await harness.do(wait_signal(holding, "never", s=1)))
    await harness.child(holding)
    await harness.do(complete(holding, "b", "2", 2))
    harness.clock.advance(s=1)
    the(Fetched, await harness.do(fetch(holding)))
    await harness.signal(run)
    await harness.do(sleep(holding, "over", s=0))
    await harness.do(begin(holding, "loser"))
    await harness.do(race(holding, "race", "a", "loser"))
    await harness.do(patch(holding, "patch"))
    return run


LIFE = [
    (K.STEP_STARTED, "a", 1),
    (K.STEP_COMPLETED, "a", 1),
    (K.STEP_STARTED, "b", 1),
    (K.STEP_RETRYING, "b", 1),
    (K.STEP_STARTED, "b", 2),
    (K.SLEEP_STARTED, "nap", 1),
    (K.SIGNAL_AWAITED, "approved", 1),
    (K.SIGNAL_AWAITED, "never", 1),
    (K.CHILD_STARTED, "child", 1),
    (K.STEP_COMPLETED, "b", 2),
    (K.SLEEP_COMPLETED, "nap", 1),
    (K.SIGNAL_TIMED_OUT, "never", 1),
    (K.SIGNAL_RECEIVED, "approved", 1),
    (K.SLEEP_COMPLETED, "over", 1),
    (K.STEP_STARTED, "loser", 1),
    (K.RACE_DECIDED, "race", 1),
    (K.PATCHED, "patch", 1),
]


def without_begin_of_what_was_over(reported: list[RunEvent]) -> list[RunEvent]:
    """A sleep that is over when it begins has one number or two."""
    return [event for event in reported if (event.kind, event.step_id) != (K.SLEEP_STARTED, "over")]


async def test_everything_is_reported_in_order(harness: StoreHarness) -> None:
    run = await a_full_life(harness)
    reported = await events(harness, run)
    assert summary(without_begin_of_what_was_over(reported)) == LIFE
    seqs = [event.seq for event in reported]
    assert seqs == sorted(set(seqs))
    by_place = {(event.kind, event.step_id): event for event in reported}
    assert by_place[K.STEP_COMPLETED, "a"].output == Payload(b"1")
    assert by_place[K.STEP_COMPLETED, "a"].name == "A"
    failed = by_place[K.STEP_RETRYING, "b"]
    assert failed.error is not None
    assert (failed.error.type, failed.until) == (BOOM.type, failed.at)
    slept = by_place[K.SLEEP_STARTED, "nap"]
    assert slept.until == slept.at + 1_000_000
    assert by_place[K.CHILD_STARTED, "child"].child_run_id
    assert by_place[K.SIGNAL_RECEIVED, "approved"].output == Payload(b"yes")
    assert by_place[K.SIGNAL_TIMED_OUT, "never"].error is not None


async def test_it_goes_on_from_any_number(harness: StoreHarness) -> None:
    run = await a_full_life(harness)
    reported = await events(harness, run)
    for place, event in enumerate(reported):
        assert await events(harness, run, event.seq) == reported[place + 1 :]
    for limit in (1, 2, 5):
        assert await events(harness, run, limit=limit) == reported


async def test_a_page_is_bounded_in_bytes_and_has_at_least_one(harness: StoreHarness) -> None:
    holding = await harness.running()
    for n in range(4):
        await harness.done(holding, f"{n}", "x" * 200_000)
    page = await harness.store.events_of(holding.run, 0, 1_000)
    assert page is not None
    assert page.more
    assert sum(len(event.output.data) for event in page.events if event.output) <= 256 * 1024
    assert len(await events(harness, holding.run)) == 8
    await harness.done(holding, "huge", "x" * 1_000_000)
    assert [event.step_id for event in await events(harness, holding.run)][-1] == "huge"


async def test_the_run_comes_with_them_as_it_stood_then(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    await harness.do(say_status(holding, "half way", 0.5))
    await harness.pause(holding.run, "have a look")
    page = await harness.store.events_of(holding.run, 10_000, 10)
    assert page is not None
    mark = page.mark
    assert (page.events, page.more) == ((), False)
    assert (mark.run, mark.status, mark.status_text, mark.progress) == (holding.run, RunStatus.RUNNING, "half way", 0.5)
    assert (mark.pause_requested, mark.pause_reason, mark.finished_at) == (True, "have a look", None)
    await harness.do(hand_back(holding))
    assert [mark] != await harness.store.markers_of([holding.run])
    await harness.cancel(holding.run)
    (after,) = await harness.store.markers_of([holding.run])
    assert after is not None
    assert (after.status, after.cancel_requested, after.pause_reason) == (RunStatus.PENDING, True, "")


async def test_the_end_has_the_last_number(harness: StoreHarness) -> None:
    for end in (complete_run, fail_run):
        holding = await harness.running()
        await harness.done(holding, "a")
        await harness.do(end(holding))
        page = await harness.store.events_of(holding.run, 0, 10)
        assert page is not None
        assert page.mark.status.ended
        assert page.mark.finished_at == harness.now
        assert page.mark.seq > page.events[-1].seq


async def test_a_retried_run_reports_what_failed_before(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    await harness.do(begin(holding, "b", retry=None))
    for attempt in (1, 2, 3):
        if attempt > 1:
            harness.clock.advance(s=600)
            holding = await harness.take_over(holding) if attempt < 0 else holding
            await harness.renew(holding)
            await harness.do(begin(holding, "b", attempt))
        await harness.do(fail(holding, "b", BOOM, attempt))
    await harness.do(fail_run(holding))
    before = await events(harness, holding.run)
    await harness.retry(holding.run, "b")
    again = await harness.hold(holding.run)
    await harness.do(begin(again, "b"))
    await harness.do(complete(again, "b"))
    reported = await events(harness, holding.run)
    seqs = [event.seq for event in reported]
    assert seqs == sorted(set(seqs))
    assert summary(reported)[-2:] == [(K.STEP_STARTED, "b", 1), (K.STEP_COMPLETED, "b", 1)]
    assert await events(harness, holding.run, before[-1].seq) == reported[-2:]


async def test_others_see_nothing(harness: StoreHarness) -> None:
    run = await harness.start(namespace="mine")
    foreign = RunKey("yours", run.run_id)
    assert await harness.store.events_of(foreign, 0, 10) is None
    assert await harness.store.events_of(RunKey("mine", "no such run"), 0, 10) is None
    snapshots = await harness.store.markers_of([foreign, run, RunKey("mine", harness.ids.run_id(harness.now))])
    assert [mark is not None for mark in snapshots] == [False, True, False]


async def test_a_fork_reports_what_it_took_over(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    await harness.done(holding, "b")
    forked = the(Started, await harness.fork(holding.run, "b"))
    reported = await events(harness, RunKey("default", forked.run_id))
    assert summary(reported) == [(K.STEP_STARTED, "a", 1), (K.STEP_COMPLETED, "a", 1)]
    the(TimerSet, await harness.do(sleep(holding, "nap", s=9)))
    await harness.do(park(holding))

"""What happened to a run is told in order, each thing once, from any number on."""

from kagzi.core.events import EventKind, RunEvent
from kagzi.core.records import Payload, RunKey
from kagzi.core.run.outcomes import NotParked, RetryScheduled, Started, TimerSet
from kagzi.core.states import RunStatus

from .verbs import (
    AT_ONCE,
    BOOM,
    Cellar,
    ask,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
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


async def events(cellar: Cellar, run: RunKey, after: int = 0, limit: int = 1_000) -> list[RunEvent]:
    """All of them, page by page; each page goes on from the last number seen."""
    told: list[RunEvent] = []
    for _ in range(1_000):
        news = await cellar.store.events_of(run, after, limit)
        assert news is not None
        assert len(news.events) <= limit
        told += news.events
        if not news.more:
            return told
        assert news.events
        after = news.events[-1].seq
    raise AssertionError("there is no end to it")


def said(told: list[RunEvent]) -> list[tuple[EventKind, str, int]]:
    return [(event.kind, event.step_id, event.attempt) for event in told]


async def a_full_life(cellar: Cellar) -> RunKey:
    holding = await cellar.running()
    run = holding.run
    await cellar.write(begin(holding, "a", name="A"), complete(holding, "a", "1"))
    await cellar.do(begin(holding, "b", retry=AT_ONCE))
    the(RetryScheduled, await cellar.do(fail(holding, "b")))
    await cellar.do(begin(holding, "b", 2))
    the(TimerSet, await cellar.do(sleep(holding, "nap", s=1)))
    the(TimerSet, await cellar.do(wait_signal(holding, s=60)))
    the(TimerSet, await cellar.do(wait_signal(holding, "never", s=1)))
    await cellar.child(holding)
    await cellar.do(complete(holding, "b", "2", 2))
    cellar.clock.advance(s=1)
    the(NotParked, await cellar.do(ask(holding)))
    await cellar.signal(run)
    await cellar.do(sleep(holding, "over", s=0))
    await cellar.do(begin(holding, "loser"))
    await cellar.do(race(holding, "race", "a", "loser"))
    await cellar.do(patch(holding, "patch"))
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


def without_begin_of_what_was_over(told: list[RunEvent]) -> list[RunEvent]:
    """A sleep that is over when it begins has one number or two."""
    return [event for event in told if (event.kind, event.step_id) != (K.SLEEP_STARTED, "over")]


async def test_everything_is_told_in_its_order(cellar: Cellar) -> None:
    run = await a_full_life(cellar)
    told = await events(cellar, run)
    assert said(without_begin_of_what_was_over(told)) == LIFE
    seqs = [event.seq for event in told]
    assert seqs == sorted(set(seqs))
    by_place = {(event.kind, event.step_id): event for event in told}
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


async def test_it_goes_on_from_any_number(cellar: Cellar) -> None:
    run = await a_full_life(cellar)
    told = await events(cellar, run)
    for place, event in enumerate(told):
        assert await events(cellar, run, event.seq) == told[place + 1 :]
    for limit in (1, 2, 5):
        assert await events(cellar, run, limit=limit) == told


async def test_a_page_is_bounded_in_bytes_and_has_at_least_one(cellar: Cellar) -> None:
    holding = await cellar.running()
    for n in range(4):
        await cellar.done(holding, f"{n}", "x" * 200_000)
    news = await cellar.store.events_of(holding.run, 0, 1_000)
    assert news is not None
    assert news.more
    assert sum(len(event.output.data) for event in news.events if event.output) <= 256 * 1024
    assert len(await events(cellar, holding.run)) == 8
    await cellar.done(holding, "huge", "x" * 1_000_000)
    assert [event.step_id for event in await events(cellar, holding.run)][-1] == "huge"


async def test_the_run_comes_with_them_as_it_stood_then(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "a")
    await cellar.do(say_status(holding, "half way", 0.5))
    await cellar.pause(holding.run, "have a look")
    news = await cellar.store.events_of(holding.run, 10_000, 10)
    assert news is not None
    mark = news.mark
    assert (news.events, news.more) == ((), False)
    assert (mark.run, mark.status, mark.status_text, mark.progress) == (holding.run, RunStatus.RUNNING, "half way", 0.5)
    assert (mark.pause_requested, mark.pause_reason, mark.finished_at) == (True, "have a look", None)
    await cellar.do(hand_back(holding))
    assert [mark] != await cellar.store.marks_of([holding.run])
    await cellar.cancel(holding.run)
    (after,) = await cellar.store.marks_of([holding.run])
    assert after is not None
    assert (after.status, after.cancel_requested, after.pause_reason) == (RunStatus.PENDING, True, "")


async def test_the_end_has_the_last_number(cellar: Cellar) -> None:
    for end in (complete_run, fail_run):
        holding = await cellar.running()
        await cellar.done(holding, "a")
        await cellar.do(end(holding))
        news = await cellar.store.events_of(holding.run, 0, 10)
        assert news is not None
        assert news.mark.status.ended
        assert news.mark.finished_at == cellar.now
        assert news.mark.seq > news.events[-1].seq


async def test_a_run_that_was_tried_again_tells_what_failed_before(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "a")
    await cellar.do(begin(holding, "b", retry=None))
    for attempt in (1, 2, 3):
        if attempt > 1:
            cellar.clock.advance(s=600)
            holding = await cellar.take_over(holding) if attempt < 0 else holding
            await cellar.renew(holding)
            await cellar.do(begin(holding, "b", attempt))
        await cellar.do(fail(holding, "b", BOOM, attempt))
    await cellar.do(fail_run(holding))
    before = await events(cellar, holding.run)
    await cellar.retry(holding.run, "b")
    again = await cellar.hold(holding.run)
    await cellar.do(begin(again, "b"))
    await cellar.do(complete(again, "b"))
    told = await events(cellar, holding.run)
    seqs = [event.seq for event in told]
    assert seqs == sorted(set(seqs))
    assert said(told)[-2:] == [(K.STEP_STARTED, "b", 1), (K.STEP_COMPLETED, "b", 1)]
    assert await events(cellar, holding.run, before[-1].seq) == told[-2:]


async def test_others_see_nothing(cellar: Cellar) -> None:
    run = await cellar.start(namespace="mine")
    foreign = RunKey("yours", run.run_id)
    assert await cellar.store.events_of(foreign, 0, 10) is None
    assert await cellar.store.events_of(RunKey("mine", "no such run"), 0, 10) is None
    marks = await cellar.store.marks_of([foreign, run, RunKey("mine", cellar.ids.run_id(cellar.now))])
    assert [mark is not None for mark in marks] == [False, True, False]


async def test_a_fork_tells_what_it_took_over(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "a")
    await cellar.done(holding, "b")
    forked = the(Started, await cellar.fork(holding.run, "b"))
    told = await events(cellar, RunKey("default", forked.run_id))
    assert said(told) == [(K.STEP_STARTED, "a", 1), (K.STEP_COMPLETED, "a", 1)]
    the(TimerSet, await cellar.do(sleep(holding, "nap", s=9)))
    await cellar.do(park(holding))

"""How much one answer, and one batch of answers, may hold: results come in pages, and what would read too much comes in
the next batch."""

import pytest

from kagzi.core import limits
from kagzi.core.pages.sizes import outcome_bytes, task_bytes
from kagzi.core.records import HistoryStep, RunLease
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import (
    Deferred,
    Fetched,
    Known,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    SignalBound,
    TimerSet,
)

from .verbs import StoreHarness, begin, complete, fetch, park, payload, sleep, the, wait_signal

LARGE = 1_900_000
MOST_AT_ONCE = limits.BATCH_ANSWER_BYTES + limits.PAYLOAD_BYTES


async def waiting(harness: StoreHarness, names: list[str]) -> RunLease:
    holding = await harness.running()
    for outcome in await harness.write(*(wait_signal(holding, name) for name in names)):
        the(TimerSet, outcome)
    return holding


async def all_pages(harness: StoreHarness, holding: RunLease, *, known_seq: int = 0) -> list[Fetched]:
    pages: list[Fetched] = []
    while True:
        pages.append(the(Fetched, await harness.do(fetch(holding, known_seq=known_seq))))
        if not pages[-1].more:
            return pages
        known_seq = pages[-1].results[-1].seq


def results_of(pages: list[Fetched]) -> list[HistoryStep]:
    return [step for page in pages for step in page.results]


async def until_done(harness: StoreHarness, *commands: Command) -> tuple[list[Outcome], int]:
    """Write what is deferred again, as the journal does. Returns the outcomes, and how many batches it took."""
    done: list[Outcome] = []
    left, batches = list(commands), 0
    while left:
        outcomes = await harness.write(*left)
        batches += 1
        assert sum(map(outcome_bytes, outcomes)) < MOST_AT_ONCE
        deferred = [isinstance(outcome, Deferred) for outcome in outcomes]
        assert not deferred[0], "the first of a batch is always done"
        done += [outcome for outcome, later in zip(outcomes, deferred, strict=True) if not later]
        left = [command for command, later in zip(left, deferred, strict=True) if later]
    return done, batches


@pytest.mark.parametrize(("count", "size", "least_pages"), [(12, 400_000, 6), (4, LARGE, 4), (200, 1_000, 1)])
async def test_results_come_in_pages(harness: StoreHarness, count: int, size: int, least_pages: int) -> None:
    names = [f"s{number}" for number in range(count)]
    holding = await waiting(harness, names)
    for name in reversed(names):
        await harness.signal(holding.run, name, "x" * size)
    pages = await all_pages(harness, holding)
    assert len(pages) >= least_pages
    for page in pages:
        assert page.results
        assert outcome_bytes(page) <= limits.MESSAGE_SOFT_BYTES + 1_000 or len(page.results) == 1
    results = results_of(pages)
    assert [step.step_id for step in results] == names[::-1], "in the order in which they came"
    assert [step.seq for step in results] == sorted(step.seq for step in results)
    assert all(step.output == payload("x" * size) for step in results)
    known = results[-1].seq
    assert the(Fetched, await harness.do(fetch(holding, known_seq=known))) == Fetched(harness.now, ())


async def test_thousands_of_small_results_are_pages_too(harness: StoreHarness) -> None:
    holding = await harness.running()
    count = limits.MESSAGE_SOFT_BYTES // 200 + 100
    for first in range(0, count, 1_000):
        names = [f"s{number}" for number in range(first, min(first + 1_000, count))]
        await harness.write(*(command for name in names for command in (begin(holding, name), complete(holding, name))))
    pages = await all_pages(harness, holding)
    assert len(pages) > 1
    assert [step.step_id for step in results_of(pages)] == [f"s{number}" for number in range(count)]


async def test_a_wait_that_is_over_comes_behind_pages_of_others(harness: StoreHarness) -> None:
    holding = await waiting(harness, ["a", "b"])
    the(TimerSet, await harness.do(sleep(holding, "nap", s=5)))
    for name in ("a", "b"):
        await harness.signal(holding.run, name, "x" * LARGE)
    harness.clock.advance(s=6)
    first = the(NotParked, await harness.do(park(holding, "a", "b", "nap", known_seq=0)))
    assert first.more
    rest = results_of(await all_pages(harness, holding, known_seq=first.results[-1].seq))
    assert [step.step_id for step in (*first.results, *rest)] == ["a", "b", "nap"]
    the(TimerSet, await harness.do(sleep(holding, "more", s=50)))
    the(Parked, await harness.do(park(holding, known_seq=rest[-1].seq)))


async def test_buffered_signals_are_bound_as_far_as_the_answer_has_space(harness: StoreHarness) -> None:
    holding = await harness.running()
    for number in range(7):
        await harness.signal(holding.run, "go", f"{number}" + "x" * LARGE)
    commands = [wait_signal(holding, "go", step_id=f"w{number}") for number in range(7)]
    outcomes, batches = await until_done(harness, *commands)
    assert batches >= 3
    assert [the(SignalBound, outcome).payload.data[:1] for outcome in outcomes] == [b"%d" % n for n in range(7)]
    seqs = [the(SignalBound, outcome).seq for outcome in outcomes]
    assert seqs == sorted(seqs)
    again, _ = await until_done(harness, *commands)
    assert [the(Known, outcome).step.output for outcome in again] == [
        the(SignalBound, outcome).payload for outcome in outcomes
    ]


async def test_what_follows_something_deferred_in_its_run_is_deferred_and_others_are_not(harness: StoreHarness) -> None:
    holding, other = await harness.running(), await harness.running()
    for _ in range(5):
        await harness.signal(holding.run, "go", "x" * LARGE)
    waits: list[Command] = [wait_signal(holding, "go", step_id=f"w{number}") for number in range(5)]
    outcomes = await harness.write(*waits, begin(holding, "after"), begin(other, "s"), complete(other, "s"))
    assert isinstance(outcomes[4], Deferred)
    assert isinstance(outcomes[5], Deferred), "the order within a run is kept"
    the(Recorded, outcomes[7])


async def test_steps_that_are_begun_again_are_answered_as_far_as_the_answer_has_space(harness: StoreHarness) -> None:
    holding = await harness.running()
    names = [f"s{number}" for number in range(6)]
    for name in names:
        await harness.done(holding, name, "x" * LARGE)
    outcomes, batches = await until_done(harness, *(begin(holding, name) for name in names))
    assert batches >= 2
    assert [the(Known, outcome).step.step_id for outcome in outcomes] == names
    assert all(the(Known, outcome).step.output == payload("x" * LARGE) for outcome in outcomes)


async def test_who_asks_first_is_answered_first(harness: StoreHarness) -> None:
    """A run with endless results does not keep another one waiting: what was deferred comes first in the next batch."""
    asking = [await waiting(harness, ["a", "b", "c"]) for _ in range(6)]
    for holding in asking:
        for name in ("a", "b", "c"):
            await harness.signal(holding.run, name, "x" * LARGE)
    for order in (asking, asking[::-1]):
        outcomes = await harness.write(*(fetch(holding) for holding in order))
        answered = [isinstance(outcome, Fetched) for outcome in outcomes]
        assert answered == sorted(answered, reverse=True)
        assert any(answered)
        assert not all(answered)


async def test_a_claim_takes_as_many_as_fit_into_its_bytes_and_says_that_there_are_more(harness: StoreHarness) -> None:
    for _ in range(8):
        await harness.start(input=payload("x" * LARGE))
    taken = 0
    for _ in range(8):
        claimed = await harness.claimed(harness.want(limit=100))
        assert claimed.runs
        assert sum(map(task_bytes, claimed.runs)) < limits.CLAIM_BYTES + limits.PAYLOAD_BYTES + 10_000
        taken += len(claimed.runs)
        assert bool(claimed.more) == (taken < 8)
        if not claimed.more:
            break
    assert taken == 8

"""Park against signal, child end and timer, in random order at the same time: no run sleeps for ever.

KAGZI_TEST_INTERLEAVINGS says how many (300 if nothing is said); `make interleavings` plays 10,000 on every set-up.
"""

import asyncio
import os
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import ChildStarted, NotParked, Parked, Refused, RunClosed
from kagzi.core.states import RunStatus, StepStatus
from kagzi.core.times import Timestamp

from .invariants import check_invariants
from .verbs import LEASE_US, StoreHarness, by_id, complete_run, fail_run, leased, park, sleep, the, wait_signal

COUNT = int(os.environ.get("KAGZI_TEST_INTERLEAVINGS", "300"))
AT_ONCE = 20
SIGNALS = ("approved", "hurry", "paid")
KINDS = ("nap", "child", *SIGNALS)
LONGEST_S = 0.01


@dataclass
class Play:
    """One run, what it waits for, and everybody who comes at the same moment."""

    rng: random.Random
    holding: RunLease
    waits: tuple[str, ...]
    child: RunKey | None = None
    seen: dict[str, int] = field(default_factory=dict[str, int])

    async def moment(self) -> None:
        for _ in range(self.rng.randrange(8)):
            await asyncio.sleep(0)


async def prepare(harness: StoreHarness, rng: random.Random) -> Play:
    """A run in hand that waits for one to five things."""
    waits = tuple(sorted(rng.sample(KINDS, rng.randint(1, len(KINDS)))))
    play = Play(rng, await harness.running(), waits)
    make = {
        "nap": lambda: sleep(play.holding, "nap", s=LONGEST_S * rng.random()),
        "approved": lambda: wait_signal(play.holding, "approved"),
        "hurry": lambda: wait_signal(play.holding, "hurry", s=LONGEST_S * rng.random()),
        "paid": lambda: wait_signal(play.holding, "paid", s=3_600),
        "child": lambda: harness.child_command(play.holding),
    }
    outcomes = await harness.write(*(make[wait]() for wait in waits))
    if "child" in waits:
        play.child = RunKey("default", the(ChildStarted, outcomes[waits.index("child")]).child_run_id)
    return play


async def work(harness: StoreHarness, play: Play, holding: RunLease, known_seq: int) -> None:
    """A worker: parks until it is parked, takes what it is told meanwhile."""
    for _ in range(2 * len(KINDS)):
        await play.moment()
        outcome = await harness.insist(park(holding, *play.waits, known_seq=known_seq))
        if not isinstance(outcome, NotParked):
            assert isinstance(outcome, Parked | Refused), outcome
            return
        for step in outcome.results:
            assert step.seq > known_seq, f"told again what was known: {step}"
            assert play.seen.setdefault(step.step_id, step.seq) == step.seq
            known_seq = max(known_seq, step.seq)
    raise AssertionError("was told of more results than there are waits")


async def send(harness: StoreHarness, play: Play, name: str) -> None:
    await play.moment()
    await harness.signal(play.holding.run, name)


async def end_child(harness: StoreHarness, play: Play, child: RunLease) -> None:
    await play.moment()
    end = complete_run if play.rng.random() < 0.7 else fail_run
    the(RunClosed, await harness.insist(end(child)))


async def tick(harness: StoreHarness, rng: random.Random) -> None:
    for _ in range(4):
        for _ in range(rng.randrange(10)):
            await asyncio.sleep(0)
        harness.clock.advance(s=LONGEST_S * rng.random())
        await harness.fire(end_leases=False)


async def claim_again(harness: StoreHarness, plays: dict[RunKey, Play], rng: random.Random) -> None:
    """Another worker, that takes what was woken and parks it again."""
    for _ in range(6):
        for _ in range(rng.randrange(10)):
            await asyncio.sleep(0)
        for claimed in await harness.claim(worker_id="worker-2", limit=3):
            results = [step.seq for step in claimed.history.steps]
            await work(harness, plays[claimed.run], leased(claimed), max(results))


async def play_all(harness: StoreHarness, other: StoreHarness, seeds: range) -> None:
    rng, began = random.Random(seeds.start), harness.clock.advance(s=1)
    plays = [await prepare(harness, random.Random(seed)) for seed in seeds]
    by_run = {play.holding.run: play for play in plays}
    children = {one.run: leased(one) for one in await harness.claim(workflow_type="child")}
    actors: list[Coroutine[Any, Any, None]] = [tick(harness, rng), tick(other, rng)]
    actors += [claim_again(harness, by_run, rng), claim_again(other, by_run, rng)]
    for play in plays:
        known = (await harness.run(play.holding.run)).last_seq
        actors.append(work(play.rng.choice((harness, other)), play, play.holding, known))
        actors += [send(play.rng.choice((harness, other)), play, name) for name in play.waits if name in SIGNALS]
        if play.child is not None:
            actors.append(end_child(play.rng.choice((harness, other)), play, children[play.child]))
    rng.shuffle(actors)
    async with asyncio.timeout(60):
        await asyncio.gather(*actors)
    await check_awake(harness, plays, began)


async def check_awake(harness: StoreHarness, plays: list[Play], began: Timestamp) -> None:
    """All that they waited for has happened: they are in hand or to be claimed, and everything is told."""
    harness.clock.advance(s=LONGEST_S)
    await harness.fire(end_leases=False)
    for play in plays:
        record = await harness.run(play.holding.run)
        assert record.status != RunStatus.SLEEPING, f"it sleeps for ever: {record} {await harness.steps(record.run)}"
    await check_invariants(harness.store, created_after=began)
    harness.clock.advance(us=LEASE_US + 1)
    await harness.fire()
    claimed = {one.run: one for one in await harness.claim(limit=AT_ONCE)}
    assert set(claimed) == {play.holding.run for play in plays}
    for play in plays:
        replayed = by_id(claimed[play.holding.run].history.steps)
        assert set(replayed) == set(play.waits)
        for step in replayed.values():  # it has a result, or its holder is told that its time has come
            due = step.wake_at is not None and step.wake_at <= harness.clock.now()
            assert step.status in {StepStatus.COMPLETED, StepStatus.FAILED} or due, step
        for name, seq in play.seen.items():
            assert replayed[name].seq == seq, "a result changed its place"
    endings = [complete_run(leased(one)) for one in claimed.values()]
    assert all(isinstance(outcome, RunClosed) for outcome in await harness.write(*endings))


@pytest.mark.timeout(120 + COUNT // 2)
async def test_no_run_sleeps_for_ever(harness: StoreHarness, second_harness: StoreHarness) -> None:
    for first in range(0, COUNT, AT_ONCE):
        seeds = range(first, min(first + AT_ONCE, COUNT))
        try:
            await play_all(harness, second_harness, seeds)
        except (AssertionError, TimeoutError) as error:
            error.add_note(f"seeds {seeds}")
            raise

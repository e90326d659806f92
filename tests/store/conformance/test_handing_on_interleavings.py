"""Senders, workers and operators at once, in random order: every accepted signal is received once, or is unread on one
run that has ended; and each sender's signals are received in order.

KAGZI_TEST_INTERLEAVINGS says how many signals (300 if nothing is said).
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.records import RunKey
from kagzi.core.run.outcomes import Busy, SignalBound
from kagzi.store.protocol import Signalled
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds
from tests.support.timeouts import LOADED_MACHINE_S

from .invariants import check_invariants
from .places import Place, connected
from .test_crashes import Saboteur
from .test_handing_on import CART, run_of, signal_with_start
from .verbs import StoreHarness, complete_run, continue_as, fail_run, leased, wait_signal

COUNT = int(os.environ.get("KAGZI_TEST_INTERLEAVINGS", "300"))
SENDERS = 4

pytestmark = pytest.mark.timeout(2 * LOADED_MACHINE_S + COUNT)


@dataclass
class Story:
    """What was accepted, and what runs received, in order."""

    rng: random.Random
    accepted: list[str] = field(default_factory=list[str])
    plain: set[str] = field(default_factory=set[str])
    received: list[str] = field(default_factory=list[str])
    sending: int = SENDERS
    handed_on: int = 0
    strike: Callable[[], Awaitable[None]] | None = None

    def strikes(self) -> list[Awaitable[None]]:
        """Now and then a connection is broken meanwhile."""
        return [] if self.strike is None or self.rng.random() < 0.7 else [self.strike()]

    async def moment(self) -> None:
        for _ in range(self.rng.randrange(6)):
            await asyncio.sleep(0)


async def answered(act: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """As the engine does: while the store cannot say what became of it, the same is sent again."""
    async with asyncio.timeout(LOADED_MACHINE_S):
        while True:
            try:
                outcome = await act(*arguments)
            except Unavailable:
                await asyncio.sleep(0)
                continue
            if not isinstance(outcome, Busy):
                return outcome


async def send(harness: StoreHarness, story: Story, sender: int) -> None:
    for number in range(COUNT // SENDERS):
        await story.moment()
        value = f"{sender}/{number:05}"
        if story.rng.random() < 0.15:
            await send_plain(harness, story, value)
            continue
        on_conflict = "replace" if story.rng.random() < 0.05 else "existing"
        command = signal_with_start(harness, value, on_conflict=on_conflict)
        for _ in range(story.rng.choice((1, 1, 1, 2))):
            outcome, *_ = await asyncio.gather(answered(harness.do, command), *story.strikes())
            run_of(outcome)
        story.accepted.append(value)
    story.sending -= 1


async def send_plain(harness: StoreHarness, story: Story, value: str) -> None:
    signal = harness.signal_request("item", value, f"request-{value}")

    async def act() -> object:
        return (await harness.store.signal_run("default", workflow_id=CART, signal=signal, now=harness.now))[0]

    if isinstance(await answered(act), Signalled):
        story.accepted.append(value)
        story.plain.add(value)


async def work(harness: StoreHarness, story: Story, worker_id: str) -> None:
    """Takes what there is, receives some of it, and ends the run in some way. When nobody sends any more, receives all
    that there is."""
    claim = partial(harness.claim, worker_id=worker_id)
    while True:
        alone = story.sending == 0
        await story.moment()
        taken = await answered(claim)
        if not taken and alone:
            return
        for claimed in taken:
            holding, got = leased(claimed), list[str]()
            for n in range(50 if alone else story.rng.randrange(5)):
                outcome = await answered(harness.do, wait_signal(holding, "item", step_id=f"{n}", s=0.001))
                if not isinstance(outcome, SignalBound):
                    break
                got.append(outcome.payload.data.decode())
            await story.moment()
            end = story.rng.choice((complete_run, complete_run, fail_run, None))
            new = harness.ids.run_id(harness.now)
            command = continue_as(holding, new) if end is None else end(holding)
            await answered(harness.do, command)
            story.received += got
        harness.clock.advance(us=1)


async def operate(harness: StoreHarness, story: Story) -> None:
    """Ends open runs from outside."""
    while story.sending:
        for _ in range(5):
            await story.moment()
        record = await answered(partial(harness.store.get_run, "default", workflow_id=CART))
        if record is None:
            continue
        if story.rng.random() < 0.5:
            await answered(harness.store.terminate_run, record.run, "", harness.now)
        else:
            await answered(harness.store.cancel_run, record.run, "", harness.now, harness.now + 1)
            await answered(partial(harness.store.fire, harness.now + 2, end_leases=False, limit=100))


async def check(harness: StoreHarness, story: Story) -> None:
    where: dict[str, RunKey] = {}
    received: Counter[str] = Counter()
    runs = (await check_invariants(harness.store))[::-1]
    for run in runs:
        assert run.status.ended, run
        after = 0
        while page := await harness.store.export_signals(run.run, after, 1_000):
            for signal in page:
                after, value = signal.number, signal.request_id.removeprefix("request-")
                assert value not in where, f"{value} is with two runs"
                where[value] = run.run
                received[value] += signal.step_id is not None
                if signal.step_id is None and signal.start_request is not None:
                    raise AssertionError(f"{value} was to be handed on by {run}")
    assert sorted(where) == sorted(story.accepted), "each is with one run"
    unread = [value for value in where if not received[value]]
    assert sum(run.unread_signals for run in runs) == len(unread)
    assert sorted(value for value in received if received[value]) == sorted(
        {value for value in where if value not in unread}
    )
    story.handed_on = sum(run.handed_on_to is not None for run in runs)
    for sender in range(SENDERS):
        mine = [value for value in story.received if value.startswith(f"{sender}/") and received[value]]
        by_call = [value for value in mine if value not in story.plain]
        assert by_call == sorted(by_call), "in the order in which they were sent"


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_doubled_or_out_of_order(
    harness: StoreHarness, second_harness: StoreHarness, seed: int
) -> None:
    story = Story(random.Random(seed))
    sides = (harness, second_harness)
    acts: list[Coroutine[Any, Any, None]] = [send(sides[n % 2], story, n) for n in range(SENDERS)]
    acts += [work(harness, story, "worker-1"), operate(second_harness, story)]
    async with asyncio.timeout(LOADED_MACHINE_S + COUNT):
        await asyncio.gather(*acts)
    await work(harness, story, "worker-1")
    await check(harness, story)
    assert story.handed_on > 5, "hardly anything was handed on: this proves little"


@pytest.mark.parametrize("seed", range(2))
async def test_the_same_while_connections_break(
    postgres_alone: Place, clock: FakeClock, ids: CountingIds, seed: int
) -> None:
    harness = StoreHarness(await postgres_alone.open(), clock, ids)
    story = Story(random.Random(seed))
    async with connected(postgres_alone.address) as connection:
        saboteur = Saboteur(connection, seed)
        lock = asyncio.Lock()  # it has one connection

        async def strike() -> None:
            async with lock:
                await saboteur.strike()

        story.strike = strike
        async with asyncio.timeout(LOADED_MACHINE_S + COUNT):
            await asyncio.gather(*(send(harness, story, n) for n in range(SENDERS)), work(harness, story, "worker-1"))
    await work(harness, story, "worker-1")
    await check(harness, story)
    assert saboteur.hits >= 5, "the connections were hardly touched"

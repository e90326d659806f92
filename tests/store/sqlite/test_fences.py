"""What the writer knows by heart makes it quicker and nothing else.

The same commands are given to three stores: one that remembers and writes in batches, one that forgets everything
before each write, and one that looks at each command alone. Outcomes and tables must not differ.
"""

import random
from collections.abc import Callable, Sequence

import pytest

from kagzi.core.records import Lease, RunLease
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Outcome
from kagzi.store.protocol import LeaseTerms
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.write import write
from tests.store.conformance.verbs import (
    AT_ONCE,
    STEADY,
    StoreHarness,
    acknowledge_cancel,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
    finish,
    hand_back,
    leased,
    park,
    sleep,
)

STEPS = ("a", "b", "nap")


def commands_for(rng: random.Random, holding: RunLease) -> list[Command]:
    """A few commands as a worker might send them, and as it never should."""
    lease = Lease(max(1, holding.lease.counter - rng.choice((0, 0, 0, 0, 0, 1))), holding.lease.nonce)
    one = RunLease(holding.run, lease)
    step, attempt = rng.choice(STEPS), rng.choice((1, 1, 1, 0, 2))
    choices: list[Callable[[], list[Command]]] = [
        lambda: [begin(one, step, attempt, retry=rng.choice((None, STEADY, AT_ONCE)))],
        lambda: [begin(one, step), complete(one, step)],
        lambda: [complete(one, step, "x", attempt)],
        lambda: [fail(one, step, attempt=attempt)],
        lambda: [sleep(one, step, s=rng.choice((0, 1, 5)))],
        lambda: [finish(one, step)],
        lambda: [park(one, "nap", known_seq=rng.choice((0, 1_000_000)))],
        lambda: [complete_run(one)],
        lambda: [fail_run(one)],
        lambda: [hand_back(one)],
        lambda: [acknowledge_cancel(one)],
    ]
    weights = (6, 8, 6, 4, 3, 2, 2, 1, 1, 1, 1)
    return rng.choices(choices, weights)[0]()


async def remembering(harness: StoreHarness, batch: Sequence[Command]) -> Sequence[Outcome]:
    return await harness.write(*batch)


async def forgetting(harness: StoreHarness, batch: Sequence[Command]) -> Sequence[Outcome]:
    outcomes: list[Outcome] = []
    for command in batch:
        assert isinstance(harness.store, SqliteStore)
        assert harness.store._writer is not None
        await harness.store._writing.call(harness.store._writer.forget_all)
        outcomes += await harness.write(command)
    return outcomes


async def looking(harness: StoreHarness, batch: Sequence[Command]) -> Sequence[Outcome]:
    store = harness.store
    assert isinstance(store, SqliteStore)
    assert store._writer is not None
    terms = LeaseTerms(until=harness.now + 15_000_000, renew_before=harness.now + 7_500_000)
    outcomes, _ = await store._writing.call(
        write._in_transaction, store._writer, write._one_by_one, batch, harness.now, terms
    )
    return outcomes


async def picture(harness: StoreHarness, holdings: Sequence[RunLease]) -> object:
    return [await harness.picture(holding.run) for holding in holdings]


@pytest.mark.parametrize("seed", range(12))
async def test_memory_makes_no_difference(harnesses: list[StoreHarness], seed: int) -> None:
    rng = random.Random(seed)
    runs = [[await harness.start(retry=STEADY if n % 2 else None) for n in range(4)] for harness in harnesses]
    assert runs[0] == runs[1] == runs[2]
    holdings: dict[str, RunLease] = {}
    for _ in range(60):
        claimed = [await harness.claim(limit=4) for harness in harnesses]
        assert claimed[0] == claimed[1] == claimed[2]
        holdings |= {one.run.run_id: leased(one) for one in claimed[0]}
        batch = [command for _ in range(6) for command in commands_for(rng, rng.choice(list(holdings.values())))]
        outcomes = [
            list(await how(harness, batch))
            for how, harness in zip((remembering, forgetting, looking), harnesses, strict=True)
        ]
        assert outcomes[0] == outcomes[1] == outcomes[2], batch
        if rng.random() < 0.1:
            run = rng.choice(runs[0])
            cancelled = [await harness.cancel(run) for harness in harnesses]
            assert cancelled[0] == cancelled[1] == cancelled[2]
        for harness in harnesses:
            harness.clock.advance(s=1)
        fired = [await harness.fire() for harness in harnesses]
        assert fired[0] == fired[1] == fired[2]
    pictures = [await picture(harness, list(holdings.values())) for harness in harnesses]
    assert pictures[0] == pictures[1] == pictures[2]


async def test_a_hundred_completions_are_one_transaction_and_few_statements(harnesses: list[StoreHarness]) -> None:
    harness = harnesses[0]
    holdings = [await harness.running() for _ in range(100)]
    await harness.write(*(begin(holding, "a") for holding in holdings))
    before = harness.store.transactions, harness.store.statements
    await harness.write(*(complete(holding, "a") for holding in holdings))
    assert harness.store.transactions - before[0] == 1
    assert harness.store.statements - before[1] <= 4  # 64 + 32 + 4 results, one update of the runs


async def test_ordinary_steps_are_written_without_a_read(harnesses: list[StoreHarness]) -> None:
    harness = harnesses[0]
    holding = await harness.running()
    before = harness.store.statements
    await harness.write(begin(holding, "a"), complete(holding, "a"), begin(holding, "b"), complete(holding, "b"))
    assert harness.store.statements - before == 2
    await harness.write(begin(holding, "c"), complete(holding, "c"), complete_run(holding))
    assert harness.store.statements - before <= 6

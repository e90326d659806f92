"""The fast path is an optimisation: in any state, any batch comes to what load, decide and save come to, outcomes and
rows.

KAGZI_TEST_PAIRS says how many pairs of a state and a batch are played on each set-up (300 if nothing is said); `make
fast-path` plays 10,000. The states are those that scenarios come through: after each batch all rows of the two stores
are compared.
"""

import os
import random

import pytest

from tests.store.conformance.test_steps import limit_steps

from .scenarios import scenario
from .shrink import shrink
from .twins import Difference, Twins

PAIRS = int(os.environ.get("KAGZI_TEST_PAIRS", "300"))
SHARDS = max(1, PAIRS // 2_500)
"""So that several processes can share the work."""
BATCHES = 20
"""Of one scenario."""
SCENARIOS = -(-PAIRS // BATCHES // SHARDS)
"""Of one shard."""
FEW_STEPS = 7


async def play(twins: Twins, seeds: range) -> None:
    for seed in seeds:
        operations = scenario(random.Random(seed), BATCHES)
        try:
            await twins.play(operations)
        except Difference as difference:
            smallest = await shrink(twins, operations, difference)
            smallest.add_note(f"shrunk from seed {seed}")
            raise smallest from None


@pytest.mark.timeout(300 + PAIRS)
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_the_fast_path_equals_load_decide_save(twins: Twins, shard: int) -> None:
    await play(twins, range(shard * SCENARIOS, (shard + 1) * SCENARIOS))
    print(twins.tally)
    assert twins.tally.batches * SHARDS >= PAIRS
    twins.tally.check()


@pytest.mark.timeout(300 + PAIRS)
async def test_it_does_so_where_steps_run_out(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_steps(monkeypatch, FEW_STEPS)
    await play(twins, range(1_000_000, 1_000_000 + -(-PAIRS // BATCHES // 5)))
    print(twins.tally)


async def test_what_was_found_once(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends after a step with a name that cannot be stored."""
    limit_steps(monkeypatch, FEW_STEPS)
    await play(twins, range(1_000_036, 1_000_037))

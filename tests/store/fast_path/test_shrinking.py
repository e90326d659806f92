"""The test of the fast path is a test: it finds a difference, shows it briefly, and does not pass by looking away."""

import random

import pytest

from kagzi.core.run.commands import CompleteStep

from .scenarios import scenario
from .setups import SqliteTwins
from .shrink import shrink
from .twins import Difference, Tally, Written


async def test_a_difference_is_detected_and_shrunk() -> None:
    """Stores that roll differently schedule other retries."""
    twins = SqliteTwins(careful_jitter=(0.9,))
    try:
        for seed in range(100):
            operations = scenario(random.Random(seed), 6)
            try:
                await twins.play(operations)
            except Difference as difference:
                smallest = await shrink(twins, operations, difference)
                break
        else:
            pytest.fail("no difference was found")
    finally:
        await twins.close()
    [shown] = smallest.__notes__
    assert "RetryScheduled" in str(smallest) or "RunClosed" in str(smallest)
    assert "FailStep" in shown or "FailRun" in shown
    assert shown.count("\n") <= 10, shown


@pytest.mark.parametrize("fast", [True, False])
def test_one_path_alone_proves_nothing(fast: bool) -> None:
    tally = Tally()
    for _ in range(100):
        tally.note(Written([], [], fast))
    with pytest.raises(AssertionError, match="of the batches took the fast path"):
        tally.check()


def test_a_kind_that_was_never_accepted_proves_nothing() -> None:
    tally = Tally()
    for n in range(100):
        tally.note(Written([], [], n % 2 == 0))
    with pytest.raises(AssertionError, match=CompleteStep.__name__):
        tally.check()

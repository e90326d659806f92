"""P6, P9, P11 for random programs: whatever happens between any two things that a run does, it ends as it would have.

KAGZI_TEST_PROGRAMS says how many programs; `make properties` plays 2,000. Each is played once undisturbed, and then
once for every moment of its life: with a crash there, and with a cancellation there.
"""

import os
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from kagzi.core.states import RunStatus
from tests.support.random_programs import PROGRAMS, Player, Program
from tests.support.virtual_loop import run_virtually

from .playback import Ending, Playback, Script

COUNT = int(os.environ.get("KAGZI_TEST_PROGRAMS", "15"))
pytestmark = pytest.mark.timeout(120 + 2 * COUNT)
SEEDS = st.integers(0, 2**32)
# Not shrunk: the failure names its program, its seed and its moment.
SOME = settings(
    max_examples=COUNT,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def perform(player: Player, seed: int, script: Script) -> Ending:
    """On a loop of its own, so that equal seeds give equal times: up to its moment each performance is the same."""

    async def performance() -> Ending:
        playback = Playback(player, seed, script)
        ending = await playback.play()
        playback.check()
        assert script.cancel_at is not None or playback.crashes == (script.crash_at is not None), "it ended too early"
        if ending.status is RunStatus.COMPLETED:
            await playback.check_replay()
        return ending

    return run_virtually(performance())


@given(program=PROGRAMS, seed=SEEDS)
@SOME
def test_a_crash_at_any_moment_changes_nothing(program: Program, seed: int) -> None:
    player = Player(program)
    expected = perform(player, seed, Script())
    assert expected.status is RunStatus.COMPLETED
    for moment, what in enumerate(expected.moments):
        ending = perform(player, seed, Script(crash_at=moment))
        assert (ending.status, ending.result) == (expected.status, expected.result), f"crash at {moment}, {what}"


@given(program=PROGRAMS, seed=SEEDS)
@example(  # a child is cancelled between the death of its worker and the end of its lease
    program=[
        ("tasks", [[("step", "a"), ("child", False), ("nothing", "b")], [("child", False), ("step", "a")]]),
        ("step", "a"),
    ],
    seed=0,
)
@SOME
def test_a_cancellation_at_any_moment_stops_the_run(program: Program, seed: int) -> None:
    player = Player(program)
    expected = perform(player, seed, Script())
    random = Random(seed)
    for moment, what in enumerate(expected.moments):
        crash_at = random.choice([None, moment + random.randrange(6)])
        ending = perform(player, seed, Script(cancel_at=moment, crash_at=crash_at))
        stopped = ending.status is RunStatus.CANCELLED
        same = (ending.status, ending.result) == (expected.status, expected.result)
        assert stopped or same, f"cancelled at {moment}, {what}: {ending}"

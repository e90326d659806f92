"""Code that changes under a run is harmless, or it is noticed before anything is done a second time.

A random program is killed at a random moment, and another build goes on, in which one of its actions has moved into a
task, a gather, a TaskGroup, a branch or a helper, has changed places with its neighbour, is there twice, has another
name, or is gone.

KAGZI_TEST_PROGRAMS says how many programs; `make properties` plays 2,000.
"""

import os
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi.core.error_details import ErrorKind
from kagzi.core.records import HistoryStep
from kagzi.core.states import RunStatus, StepKind, StepStatus
from tests.support.changing_programs import CHANGES, HARMLESS, ChangingPlayer, change, logical_name, marked
from tests.support.random_programs import PROGRAMS, Body, Program
from tests.support.virtual_loop import run_virtually

from .playback import Ending, Playback, Script

COUNT = int(os.environ.get("KAGZI_TEST_PROGRAMS", "60"))
CHANGES_EACH = 6
pytestmark = pytest.mark.timeout(120 + 2 * COUNT)
_ENDED = (StepStatus.COMPLETED, StepStatus.FAILED)


class ChangingPlayback(Playback):
    """The worker that comes after the crash has the other code. If the run is paused, the first code comes back."""

    def __init__(self, player: ChangingPlayer, seed: int, script: Script, other: list[Any]) -> None:
        super().__init__(player, seed, script)
        self._first_code, self._other_code = player.program, other
        self._at_crash: dict[str, HistoryStep] = {}
        self._done: set[str] = set()
        self._bodies_at_crash = 0
        self.pauses = 0
        self.again: list[Body] = []  # executed although their step was recorded, if under another id

    async def bury_worker(self) -> None:
        await super().bury_worker()
        self.player.program = self._other_code
        self._at_crash = dict(self.root.steps)
        self._bodies_at_crash = len(self.world.bodies)
        self._done = {
            logical_name(step.step_id)
            for step in self.root.steps.values()
            if step.kind is StepKind.FUNCTION and step.seq and step.status in _ENDED
        }

    def before_body(self, body: Body) -> None:
        super().before_body(body)
        if body.run_id == self.root.run_id and logical_name(body.step_id) in self._done:
            self.again.append(body)

    def on_pause(self) -> None:
        """Nothing was recorded by the code that does not fit, and no body ran but those which were under way at the
        crash."""
        root = self.root
        assert root.problem is not None
        assert root.problem.kind is ErrorKind.NONDETERMINISM, root.problem
        assert self.pauses == 0, "the code that began the run does not fit it any more"
        self.pauses += 1
        assert set(root.steps) == set(self._at_crash), "something was recorded"
        begun = {step.step_id for step in self._at_crash.values() if not step.seq}
        bodies = self.world.bodies[self._bodies_at_crash :]
        assert {body.step_id for body in bodies if body.run_id == root.run_id} <= begun
        self.player.program = self._first_code
        self.server.executor.close()
        self.server.executor = self.server.new_executor()
        self.server.resume(root)


def perform(player: ChangingPlayer, seed: int, script: Script, other: list[Any]) -> tuple[Ending, int]:
    code = player.program

    async def performance() -> tuple[Ending, int]:
        playback = ChangingPlayback(player, seed, script, other)
        ending = await playback.play()
        assert not playback.again, (playback.again, other, playback.root.log)
        return ending, playback.pauses

    try:
        return run_virtually(performance())
    finally:
        player.program = code


def test_changed_code_is_harmless_or_noticed_before_a_body_runs_a_second_time() -> None:
    seen: Counter[str] = Counter()

    @given(program=PROGRAMS, seed=st.integers(0, 2**32))
    @settings(
        max_examples=COUNT,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )
    def property_(program: Program, seed: int) -> None:
        player = ChangingPlayer(marked(program))
        expected, _ = perform(player, seed, Script(), player.program)
        assert expected.status is RunStatus.COMPLETED
        rng = Random(seed)
        for _ in range(CHANGES_EACH):
            how = rng.choice(CHANGES)
            crash_at = rng.randrange(len(expected.moments))
            other = change(player.program, how, rng)
            if other is None:
                continue
            ending, pauses = perform(player, seed, Script(crash_at=crash_at), other)
            what = f"{how}, crash at {crash_at}: {other}"
            # Children of one type are told apart by their order alone: the other code may get the failure of another
            # child.
            assert ending.status is RunStatus.COMPLETED or (ending.status is RunStatus.FAILED and not pauses), what
            assert not pauses or ending.result == expected.result, what
            assert not (pauses and how in HARMLESS), what
            seen[f"{how} {'noticed' if pauses else 'harmless'}"] += 1

    property_()
    print(dict(sorted(seen.items())))
    for how in CHANGES:
        assert seen[f"{how} harmless"], (how, seen)
        assert seen[f"{how} noticed"] or how in HARMLESS, (how, seen)


def test_a_wait_that_takes_the_place_of_one_without_a_timeout_ends() -> None:
    """Without the race, the wait has the id of the recorded one that nothing ends."""
    player = ChangingPlayer(marked([("race_all", [("step", "b")]), ("late", "long"), ("map", 0, 1)]))
    expected, _ = perform(player, 7, Script(), player.program)
    for crash_at in range(len(expected.moments)):
        ending, pauses = perform(player, 7, Script(crash_at=crash_at), player.program[1:])
        assert ending.status is RunStatus.COMPLETED
        assert not pauses or ending.result == expected.result

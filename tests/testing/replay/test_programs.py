"""Random programs, recorded by a real server and replayed offline: no divergence, the same values, the same `now()`,
`uuid()` and `random()`; and with one action changed: harmless, or noticed at a line, before any body runs.

KAGZI_TEST_REPLAYS says how many programs; `make replays` records 1,000.
"""

import asyncio
import os
import re
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi import Kagzi, StepKind, StepStatus
from kagzi.testing import Replay, Replayer
from tests.support import changing_programs, random_programs
from tests.support.changing_programs import CHANGES, HARMLESS, change, logical_name, marked
from tests.support.random_programs import PROGRAMS, Program, World

from .recording import DURATIONS, NotingPlayer, Recorded, record

COUNT = int(os.environ.get("KAGZI_TEST_REPLAYS", "15"))
CHANGES_EACH = 6
AT_ONCE = 10
ENDED = (StepStatus.COMPLETED, StepStatus.FAILED)
FILES = (random_programs.__file__, changing_programs.__file__)
_CLOSED_BY_OTHERS = re.compile(r"(race|parallel)(#\d+)?\[")
pytestmark = pytest.mark.timeout(120 + 2 * COUNT)


def programs() -> list[tuple[Program, int]]:
    chosen: list[tuple[Program, int]] = []

    @given(program=PROGRAMS, seed=st.integers(0, 2**32))
    @settings(
        max_examples=COUNT,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.generate],
    )
    def choose(program: Program, seed: int) -> None:
        chosen.append((program, seed))

    choose()
    return chosen


async def replayed(player: NotingPlayer, recorded: Recorded) -> Replay:
    """Nothing may be executed: whoever begins a body fails."""
    player.world, player.facts = World(0, DURATIONS), {}
    replay = await Replayer(player.workflows).run(recorded.history)
    assert player.world.bodies == []
    assert replay.executed == ()
    return replay


async def check_program(number: int, program: Program, seed: int, seen: Counter[str]) -> None:
    player = NotingPlayer(marked(program))
    recorded = await record(player, seed, f"n{number}")
    replay = await replayed(player, recorded)
    assert (replay.outcome, replay.as_recorded) == ("completed", True), (program, replay)
    assert replay.output == recorded.result
    assert player.facts == recorded.facts, program
    seen["steps"] += len(replay.steps)
    rng = Random(seed)
    for _ in range(CHANGES_EACH):
        how = rng.choice(CHANGES)
        other = change(marked(program), how, rng)
        if other is not None:
            await check_change(how, other, recorded, seen)


async def check_change(how: str, other: list[Any], recorded: Recorded, seen: Counter[str]) -> None:
    player = NotingPlayer(other)
    replay = await replayed(player, recorded)
    divergence = replay.divergence
    seen[f"{how} {'harmless' if divergence is None else 'noticed'}"] += 1
    assert divergence is None or how not in HARMLESS, (how, other, replay)
    if divergence is not None:
        assert divergence.file in FILES, divergence
        assert divergence.line, divergence
        assert "ctx.changed(" in divergence.patch
    elif how == "rename":
        names = {logical_name(each.id) for each in replay.steps}
        assert done_by(recorded) <= names, (other, replay)


def done_by(recorded: Recorded) -> set[str]:
    """Steps that code which fits is bound to ask for: not those of branches that others may have closed."""
    steps = [each for each in recorded.history.steps if each.kind is StepKind.FUNCTION and each.status in ENDED]
    return {logical_name(each.id) for each in steps if not _CLOSED_BY_OTHERS.search(each.id)}


async def test_programs_of_a_real_server_replay_offline_and_changed_code_is_noticed() -> None:
    seen: Counter[str] = Counter()
    slots = asyncio.Semaphore(AT_ONCE)

    async def check(number: int, program: Program, seed: int) -> None:
        async with slots:
            await check_program(number, program, seed, seen)

    async with Kagzi.connect(":memory:"):  # one server for all
        await asyncio.gather(*(check(number, *each) for number, each in enumerate(programs())))
    print(dict(sorted(seen.items())))
    assert seen["steps"] > COUNT
    assert sum(seen[f"{how} noticed"] for how in CHANGES) > COUNT / 2, seen

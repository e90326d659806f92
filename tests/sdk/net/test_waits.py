"""Whoever awaits the end of a run gets it, whatever others do with the stream that they share. Time does not pass by
itself here."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sdk.net.waits_kit import Network, World, run_end, run_id
from tests.support.virtual_loop import run_virtually

RUNS = 4
SETTLED_S = 100.0
NEVER, SOON = run_id(1), run_id(2)


async def answered(world: World, run: str) -> None:
    waiting = asyncio.ensure_future(world.result(run, 60.0))
    await asyncio.sleep(0.1)
    world.end(run)
    began = asyncio.get_running_loop().time()
    assert await waiting == run_end(run)
    assert asyncio.get_running_loop().time() - began < 1.0


@pytest.mark.parametrize("timeout_s", [1.0, 3.0, 9.0, 10.0, 11.0, 20.0, 30.0])
def test_a_wait_that_was_given_up_does_not_disturb_later_ones(timeout_s: float) -> None:
    """It was given up in the moment in which the stream would have been closed because nobody waits."""

    async def main() -> None:
        world = World(Network())
        assert await world.result(NEVER, timeout_s) is None
        await answered(world, SOON)
        await world.close()

    run_virtually(main())


# --- random interleavings ---------------------------------------------------------------------------------------------

_RUN = st.integers(0, RUNS - 1)
_TIMEOUT_S = st.sampled_from([0.001, 0.002, 0.003, 9.999, 10.001]) | st.integers(1, 30).map(float)
_PAUSE_S = st.sampled_from([0.0, 0.0005, 0.001, 0.002, 0.1, 1.0, 5.0, 9.999, 10.0, 10.001, 20.0])
_EVENTS = st.one_of(
    st.tuples(st.just("result"), _RUN, _TIMEOUT_S),
    st.tuples(st.just("run"), _RUN, _TIMEOUT_S),
    st.tuples(st.just("end"), _RUN, st.none()),
    st.tuples(st.just("pause"), st.none(), _PAUSE_S),
    st.tuples(st.just("break"), st.none(), st.none()),
    st.tuples(st.just("away"), st.none(), st.sampled_from([0.01, 0.1, 3.0, 12.0])),
)


async def play(events: list[tuple[str, int | None, float | None]], delays: random.Random) -> None:
    world = World(Network(lambda: delays.choice((0.0, 0.0005, 0.001, 0.003))))
    runs = [run_id(number) for number in range(RUNS)]
    waiting: list[asyncio.Task[Any]] = []

    def wait(coroutine: Coroutine[Any, Any, Any]) -> None:
        waiting.append(asyncio.create_task(coroutine))

    for kind, run, seconds in events:
        if kind == "result":
            wait(world.result(runs[run or 0], seconds))
        elif kind == "run":
            wait(world.run(runs[run or 0], seconds))
        elif kind == "end":
            world.end(runs[run or 0])
        elif kind == "break":
            world.network.break_all()
        elif kind == "away":
            world.network.is_away = True
            world.network.break_all()
            await asyncio.sleep(seconds or 0)
            world.network.is_away = False
        else:
            await asyncio.sleep(seconds or 0)
    for run in reversed(runs):  # each alone: the others may go on for ever
        last = asyncio.create_task(world.result(run))
        await asyncio.sleep(0.1)
        world.end(run)
        assert await asyncio.wait_for(last, 5) == run_end(run)
    for task in waiting:
        assert await asyncio.wait_for(task, 5) in (None, *map(run_end, runs))
    await asyncio.sleep(SETTLED_S)
    assert not world.network.open_calls
    await world.close()


@settings(max_examples=300, deadline=None)
@given(st.lists(_EVENTS, max_size=25), st.integers(0, 2**16))
@example([("result", 0, 10.0), ("pause", None, 10.0)], 0)
def test_every_wait_is_answered(events: list[tuple[str, int | None, float | None]], seed: int) -> None:
    run_virtually(play(events, random.Random(seed)))

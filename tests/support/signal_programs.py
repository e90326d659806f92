"""Random workflows that take signals in every way and give waits up in every way. Whatever happens, the values that
they have received are the first ones that were sent, in order: `received` of a run's output.

A program is a list of actions, each a tuple of its name and its parts. Programs that wait for a time of their own
(`asyncio.timeout`) come to the same end only where a replay takes no longer than what it repeats.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kagzi import Context, Retry, Signal, StepError, Workflow

Action = tuple[Any, ...]
Program = list[Action]
Received = dict[str, list[int]]

NAMES = ("a", "b")
SIGNALS = {name: Signal(name, int) for name in NAMES}
LIMIT = "20ms"

_NAME = st.sampled_from(NAMES)
_ACTIONS = [
    st.tuples(st.just("take"), _NAME),
    st.tuples(st.just("take"), _NAME),
    st.tuples(st.just("race"), _NAME, _NAME),
    st.tuples(st.just("race_with_sleep"), _NAME),
    st.tuples(st.just("race_with_step"), _NAME),
    st.tuples(st.just("cancel"), st.lists(_NAME, min_size=1, max_size=3), st.integers(0, 3)),
    st.tuples(st.just("cancel_some"), st.lists(_NAME, min_size=2, max_size=4), st.integers(0, 3)),
    st.tuples(st.just("group"), _NAME),
    st.tuples(st.just("parallel"), _NAME, _NAME),
    st.tuples(st.just("background"), _NAME),
    st.tuples(st.just("step")),
    st.tuples(st.just("continue")),
]
_TIMED = [st.tuples(st.just("timeout"), _NAME, st.integers(0, 3))]


def programs(*, timed: bool) -> st.SearchStrategy[Program]:
    return st.lists(st.one_of(*_ACTIONS, *(_TIMED if timed else [])), min_size=1, max_size=7)


class SignalPlayer:
    """Interprets a program. `pause`: what lies between two things that the code does itself; `before_body` is called by
    each step."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.before_body: Callable[[], None] = lambda: None
        self.root: Workflow[list[Any] | None, Received] = Workflow(self._root, name="program")
        self.workflows = (self.root,)

    async def _root(self, ctx: Context, state: list[Any] | None) -> Received:
        """`state`: how many actions earlier runs have done, and what they have received."""
        done, received = state or [0, {name: [] for name in NAMES}]
        play = _Play(ctx, {name: list(values) for name, values in received.items()}, self._work)
        for number, (name, *parts) in enumerate(self.program[done:], start=done + 1):
            if name == "continue":
                ctx.continue_as_new([number, play.received])
            await getattr(play, f"do_{name}")(*parts)
        return {name: list(values) for name, values in play.received.items()}

    async def _work(self) -> None:
        self.before_body()
        for _ in range(3):
            await asyncio.sleep(0)


async def _fail() -> None:
    raise ConnectionError("no")


class _Play:
    def __init__(self, ctx: Context, received: Received, work: Callable[[], Any]) -> None:
        self.ctx = ctx
        self.received = received
        self._work = work
        self._background: list[asyncio.Task[None]] = []

    async def take(self, name: str) -> None:
        self.received[name].append(await self.ctx.wait_for(SIGNALS[name]))

    async def _pass(self, how: int) -> None:
        """Let something happen: nothing, a pass of the loop, a step, or a sleep."""
        match how:
            case 0:
                pass
            case 1:
                await asyncio.sleep(0)
            case 2:
                await self.do_step()
            case _:
                await self.ctx.sleep("a-while", LIMIT)

    async def do_step(self) -> None:
        await self.ctx.step("work").run(self._work)

    async def do_take(self, name: str) -> None:
        value = await self.ctx.wait_for(SIGNALS[name], timeout=LIMIT, default=None)
        if value is not None:
            self.received[name].append(value)

    async def do_race(self, one: str, other: str) -> None:
        late = self.ctx.sleep("late", LIMIT)
        await self.ctx.race(one=self.take(one), other=self.take(other), late=late)

    async def do_race_with_sleep(self, name: str) -> None:
        await self.ctx.race(take=self.take(name), late=self.ctx.sleep("late", LIMIT))

    async def do_race_with_step(self, name: str) -> None:
        await self.ctx.race(take=self.take(name), work=self.ctx.step("work").run(self._work))

    async def do_cancel(self, names: list[str], how: int) -> None:
        await self.do_cancel_some(names, how, keep=0)

    async def do_cancel_some(self, names: list[str], how: int, keep: int = 1) -> None:
        """Several waits, often for the same name; the last ones may take something a little longer."""
        tasks = [asyncio.create_task(self.take(name)) for name in names]
        await self._pass(how or 1)
        for task in tasks[: len(tasks) - keep]:
            task.cancel()
        await self._pass(how)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def do_group(self, name: str) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.take(name))
                group.create_task(self.ctx.step("fail", retry=Retry.none()).run(_fail))
        except* StepError:
            pass

    async def do_parallel(self, one: str, other: str) -> None:
        try:
            failing = self.ctx.step("fail", retry=Retry.none()).run(_fail)
            await self.ctx.parallel(self.take(one), self.take(other), failing)
        except StepError:
            pass

    async def do_background(self, name: str) -> None:
        async def take_all() -> None:
            while True:
                await self.take(name)

        self._background.append(asyncio.create_task(take_all()))
        await self.do_step()

    async def do_timeout(self, name: str, how: int) -> None:
        try:
            async with asyncio.timeout(0.005 * how):
                await self.take(name)
        except TimeoutError:
            pass


def check_received(received: Received, sent: dict[str, int], unread: int) -> None:
    """Each signal that was sent was received once, or is unread; in order."""
    for name, values in received.items():
        assert values == list(range(len(values))), f"{name}: {received}"
    counts = {name: sent[name] - len(values) for name, values in received.items()}
    assert min(counts.values()) >= 0, (received, sent)
    assert sum(counts.values()) == unread, f"received {received}, sent {sent}, unread {unread}"

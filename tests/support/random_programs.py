"""Random workflows whose end is the same whatever is killed when: no action looks at the order in which things happen.

A program is a list of actions, each a tuple of its name and its parts; `Player` is the workflow function. Every action
returns what it saw, but for what may differ between two executions that are both right (whether a step to be run once
was lost).
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kagzi import ChildError, Context, Retry, Signal, StepError, Workflow, current_step

Action = tuple[Any, ...]
Program = list[Action]

PROCEED = Signal("go", str)
NEVER = Signal("never", str)
NEVER_SENT = "nobody came"

_NAMES = st.sampled_from(["a", "b"])
_LEAVES = st.one_of(
    st.tuples(st.just("step"), _NAMES),
    st.tuples(st.just("flaky"), _NAMES),
    st.tuples(st.just("flaky_long"), _NAMES),
    st.tuples(st.just("fail"), _NAMES),
    st.tuples(st.just("nothing"), _NAMES),
    st.tuples(st.just("once"), _NAMES),
    st.tuples(st.just("sleep"), st.sampled_from(["none", "short", "long"])),
    st.tuples(st.just("late"), st.sampled_from(["none", "short", "long"])),
    st.tuples(st.just("signal"), st.booleans()),
    st.tuples(st.just("child"), st.booleans()),
    st.tuples(st.just("handle")),
    st.tuples(st.just("facts")),
    st.tuples(st.just("map"), st.integers(0, 3), st.integers(1, 2)),
    st.tuples(st.just("map_collect"), st.integers(1, 3), st.integers(1, 2)),
)


def _branches(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    several = st.tuples(
        st.sampled_from(["gather", "group", "tasks", "parallel", "limited", "collect", "fail_fast"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    single = st.tuples(st.sampled_from(["race", "race_all", "tidy"]), inner)
    return st.lists(st.one_of(_LEAVES, several, single), min_size=1, max_size=3)


PROGRAMS = st.recursive(st.lists(_LEAVES, min_size=1, max_size=3), _branches, max_leaves=6)


class Durations(NamedTuple):
    """How long words mean. `long` is long enough for a run to park; nothing ever waits for `never`."""

    long: str
    never: str = "50 weeks"
    none: str = "0s"
    short: str = "1ms"

    def of(self, word: str) -> str:
        return str(getattr(self, word))


class Body(NamedTuple):
    run_id: str
    step_id: str
    attempt: int
    kind: str

    @property
    def cleans_up(self) -> bool:
        return self.kind == "tidy"


class World:
    """What lies outside the workflow: which bodies ran, how long they took, and what replay must give again."""

    def __init__(self, seed: int, durations: Durations) -> None:
        self.random = Random(seed)
        self.durations = durations
        self.bodies: list[Body] = []
        self.facts: dict[tuple[str, str], str] = {}
        self.before_body: Callable[[Body], None] = lambda body: None

    async def body(self, kind: str) -> str | None:
        info = current_step()
        body = Body(info.run_id, info.step_id, info.attempt, kind)
        self.before_body(body)
        self.bodies.append(body)
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        match kind:
            case "hang":
                await asyncio.get_running_loop().create_future()
            case "fail":
                raise ConnectionError(kind)
            case "flaky" if info.attempt == 1:
                raise ConnectionError(kind)
            case "nothing":
                return None
        return f"{info.step_id}={kind}"

    async def item(self, number: int) -> str:
        return f"{number}: {await self.body('item')}"

    async def odd(self, number: int) -> str:
        return f"{number}: {await self.body('item' if number % 2 else 'fail')}"

    def same_facts(self, run_id: str, place: str, facts: str) -> None:
        assert self.facts.setdefault((run_id, place), facts) == facts, "a side effect was another one on replay"


class Player:
    """Interprets a program. `workflows` are all that a worker needs for it: the program itself and its children."""

    world: World  # of the performance that is on

    def __init__(self, program: Program) -> None:
        self.program = program
        self.root: Workflow[None, list[Any]] = Workflow(self._root, name="program")
        self.child: Workflow[bool, str] = Workflow(self._child, name="child")
        self.endless: Workflow[None, None] = Workflow(self._endless, name="endless")
        self.workflows = (self.root, self.child, self.endless)

    async def _root(self, ctx: Context) -> list[Any]:
        return await self.play(ctx, self.program)

    async def _child(self, ctx: Context, fails: bool) -> str:
        if fails:
            raise LookupError("the child")
        await ctx.sleep("nap", self.world.durations.long)
        return str(await self.step(ctx, "work", "step", Retry.none()))

    async def _endless(self, ctx: Context) -> None:
        await ctx.sleep("endless", self.world.durations.never)

    async def play(self, ctx: Context, program: Program) -> list[Any]:
        return [await getattr(self, "do_" + action[0])(ctx, *action[1:]) for action in program]

    async def step(self, ctx: Context, name: str, kind: str, retry: Retry) -> str | None:
        return await ctx.step(name, retry=retry).run(self.world.body, kind)

    def every(self, ctx: Context, programs: list[Program]) -> list[Any]:
        return [self.play(ctx, program) for program in programs]

    # --- leaves -------------------------------------------------------------------------------------------------------

    async def do_step(self, ctx: Context, name: str) -> str | None:
        return await self.step(ctx, name, "step", Retry.attempts(2))

    async def do_flaky(self, ctx: Context, name: str) -> str | None:
        return await self.step(ctx, name, "flaky", Retry.fixed(3, "1ms"))

    async def do_flaky_long(self, ctx: Context, name: str) -> str | None:
        return await self.step(ctx, name, "flaky", Retry.fixed(2, self.world.durations.long))

    async def do_fail(self, ctx: Context, name: str) -> str | None:
        try:
            return await self.step(ctx, name, "fail", Retry.fixed(2, "1ms"))
        except StepError as error:
            return f"{error.step} failed {error.attempts} times: {error.error.message}"

    async def do_nothing(self, ctx: Context, name: str) -> None:
        assert await self.step(ctx, name, "nothing", Retry.none()) is None

    async def do_once(self, ctx: Context, name: str) -> str:
        try:
            await ctx.step(name, once=True).run(self.world.body, "once")
        except StepError as error:
            if error.kind != "lost":
                raise
        return "ran once at most"

    async def do_sleep(self, ctx: Context, word: str) -> None:
        await ctx.sleep("sleep", self.world.durations.of(word))

    async def do_late(self, ctx: Context, word: str) -> str:
        return await ctx.wait_for(NEVER, timeout=self.world.durations.of(word), default=NEVER_SENT)

    async def do_signal(self, ctx: Context, limited: bool) -> str:
        return await ctx.wait_for(PROCEED, timeout=self.world.durations.never if limited else None)

    async def do_child(self, ctx: Context, fails: bool) -> str:
        try:
            return await ctx.child(self.child, fails)
        except ChildError as error:
            return error.error.text

    async def do_handle(self, ctx: Context) -> list[Any]:
        handle = await ctx.start_child(self.child, False)
        return [await self.do_step(ctx, "meanwhile"), await handle.result()]

    async def do_facts(self, ctx: Context) -> bool:
        drawn = [str(ctx.uuid()), str(ctx.random())]
        self.world.same_facts(ctx.run_id, drawn[0], drawn[1])
        return ctx.changed("it")

    async def do_map(self, ctx: Context, count: int, limit: int) -> list[str]:
        return await ctx.map("each", range(count), self.world.item, limit=limit)

    async def do_map_collect(self, ctx: Context, count: int, limit: int, name: str = "some") -> list[str]:
        policy = Retry.none()
        each = await ctx.map(name, range(count), self.world.odd, limit=limit, retry=policy, on_error="collect")
        return [str(value) for value in each]

    # --- several things at once ---------------------------------------------------------------------------------------

    async def do_gather(self, ctx: Context, programs: list[Program]) -> list[Any]:
        return list(await asyncio.gather(*self.every(ctx, programs)))

    async def do_group(self, ctx: Context, programs: list[Program]) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(branch) for branch in self.every(ctx, programs)]
        return [task.result() for task in tasks]

    async def do_tasks(self, ctx: Context, programs: list[Program]) -> list[Any]:
        tasks = [asyncio.create_task(branch) for branch in self.every(ctx, programs)]
        own = await self.do_step(ctx, "own")
        return [own, *[await task for task in tasks]]

    async def do_parallel(self, ctx: Context, programs: list[Program]) -> list[Any]:
        return list(await ctx.parallel(self.every(ctx, programs)))

    async def do_limited(self, ctx: Context, programs: list[Program]) -> Any:
        failing = self.step(ctx, "stops", "fail", Retry.none())
        return await self.limited(ctx, [*self.every(ctx, programs), failing, *self.every(ctx, programs)])

    @staticmethod
    async def limited(ctx: Context, branches: list[Any]) -> Any:
        try:
            return await ctx.parallel(branches, limit=2)
        except StepError as error:
            return str(error)

    async def do_collect(self, ctx: Context, programs: list[Program]) -> list[Any]:
        failing = self.step(ctx, "collected", "fail", Retry.none())
        return [str(each) for each in await ctx.parallel([*self.every(ctx, programs), failing], on_error="collect")]

    async def do_fail_fast(self, ctx: Context, programs: list[Program]) -> str:
        try:
            await ctx.parallel([*self.every(ctx, programs), self.step(ctx, "fast", "fail", Retry.none())])
        except StepError as error:
            return str(error)
        return "nobody failed"

    async def do_race(self, ctx: Context, program: Program) -> list[Any]:
        won = await ctx.race(work=self.play(ctx, program), late=ctx.sleep("late", self.world.durations.never))
        return [won.name, won.value]

    async def do_race_all(self, ctx: Context, program: Program) -> list[Any]:
        """The losers are everything that can be going on: a body, a wait, a child, a sleep."""
        won = await ctx.race(
            body=self.step(ctx, "loser", "hang", Retry.attempts(2)),
            wait=ctx.wait_for(NEVER),
            child=ctx.child(self.endless),
            work=self.play(ctx, program),
        )
        return [won.name, won.value]

    async def do_tidy(self, ctx: Context, program: Program) -> list[Any]:
        try:
            return await self.play(ctx, program)
        finally:
            async with ctx.cleanup():
                await self.step(ctx, "tidy", "tidy", Retry.attempts(2))

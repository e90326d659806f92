"""Random workflows: steps, failures, sleeps, signals, children, and every way to do several things at once.

A program is a list of actions, each a tuple of its name and its parts. `interpret` is the workflow function; what it
returns shows all results, and in which order concurrent ones were seen.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

from kagzi.core.errors import ChildError, StepError
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.current import current_step
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.signals import Signal

Action = tuple[Any, ...]
Program = list[Action]

_NAMES = st.sampled_from(["a", "b"])
_LEAVES = st.one_of(
    st.tuples(st.just("step"), _NAMES),
    st.tuples(st.just("thrice"), _NAMES),
    st.tuples(st.just("fail"), _NAMES),
    st.tuples(st.just("sleep"), st.sampled_from(["0s", "1ms", "2h", "5h"])),
    st.tuples(st.just("facts")),
    st.tuples(st.just("once"), _NAMES),
    st.tuples(st.just("wait"), st.sampled_from(["1ms", "3h"])),
    st.tuples(st.just("wait_long")),
    st.tuples(st.just("child"), st.booleans()),
    st.tuples(st.just("handle")),
    st.tuples(st.just("changed")),
    st.tuples(st.just("map"), st.integers(0, 4), st.integers(1, 3)),
)


def _branches(children: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    kinds = st.sampled_from(
        [
            *("gather", "nested", "group", "tasks", "first", "queue", "as_completed", "abort"),
            *("parallel", "limited", "collect", "fail_fast", "race", "race_sleep", "race_step"),
        ]
    )
    branching = st.tuples(kinds, st.lists(children, min_size=1, max_size=3))
    return st.lists(st.one_of(_LEAVES, branching), min_size=1, max_size=3)


PROGRAMS = st.recursive(st.lists(_LEAVES, min_size=1, max_size=3), _branches, max_leaves=8)


NUMBER = Signal("number", int)


@workflow
async def small_child(ctx: Context, fails: bool) -> str:
    if fails:
        raise LookupError("the child")
    await ctx.sleep("nap", "1h")
    return await ctx.step("work").run(small_work)


async def small_work() -> str:
    return "child's work"


class World:
    """What lies outside the workflow: how long bodies take, and which of them ran."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bodies: list[str] = []
        self.before_body: Callable[[str], None] = lambda step_id: None
        self.meanwhile: Callable[[], None] = lambda: None  # something may happen outside

    async def body(self, value: str) -> str:
        info = current_step()
        self.before_body(info.step_id)
        self.bodies.append(info.step_id)
        for _ in range(self.random.randrange(6)):
            await asyncio.sleep(0)
            self.meanwhile()
        if value == "fail" or (value == "thrice" and info.attempt < 3):
            raise ConnectionError(value)
        return f"{info.step_id}={value}"

    async def item(self, n: int) -> str:
        return f"{n}: {await self.body('ok')}"


class ProgramRunner:
    def __init__(self, world: World) -> None:
        self.world = world

    async def run(self, ctx: Context, program: Program) -> list[Any]:
        return [await getattr(self, "do_" + action[0])(ctx, *action[1:]) for action in program]

    async def do_step(self, ctx: Context, name: str) -> str:
        return await ctx.step(name).run(self.world.body, "ok")

    async def do_thrice(self, ctx: Context, name: str) -> str:
        return await ctx.step(name, retry=Retry.fixed(3, "1ms")).run(self.world.body, "thrice")

    async def do_fail(self, ctx: Context, name: str) -> str:
        try:
            return await ctx.step(name, retry=Retry.none()).run(self.world.body, "fail")
        except StepError as error:
            return f"{error.step}!{error.error.message}"

    async def do_sleep(self, ctx: Context, duration: str) -> str:
        await ctx.sleep("sleep", duration)
        return duration

    async def do_facts(self, ctx: Context) -> list[str]:
        return [str(ctx.uuid()), str(ctx.random()), str(ctx.now())]

    async def do_once(self, ctx: Context, name: str) -> str:
        try:
            return await ctx.step(name, once=True).run(self.world.body, "ok")
        except StepError as error:
            return error.kind  # whether its worker was lost

    async def do_wait(self, ctx: Context, limit: str) -> int | None:
        return await ctx.wait_for(NUMBER, timeout=limit, default=None)

    async def do_wait_long(self, ctx: Context) -> int:
        return await ctx.wait_for(NUMBER)

    async def do_child(self, ctx: Context, fails: bool) -> str:
        try:
            return await ctx.child(small_child, fails)
        except ChildError as error:
            return error.error.text

    async def do_handle(self, ctx: Context) -> list[str]:
        handle = await ctx.start_child(small_child, False)
        return [await self.do_step(ctx, "meanwhile"), await handle.result()]

    async def do_changed(self, ctx: Context) -> bool:
        return ctx.changed("it")

    async def do_map(self, ctx: Context, count: int, limit: int) -> list[str]:
        return await ctx.map("each", range(count), self.world.item, limit=limit)

    async def do_parallel(self, ctx: Context, programs: list[Program]) -> list[Any]:
        return await ctx.parallel(self.run(ctx, program) for program in programs)

    async def do_limited(self, ctx: Context, programs: list[Program]) -> list[Any]:
        failing = ctx.step("limited", retry=Retry.none()).run(self.world.body, "fail")
        branches = [failing, *(self.run(ctx, program) for program in programs)]
        return [str(each) for each in await ctx.parallel(branches, on_error="collect", limit=2)]

    async def do_collect(self, ctx: Context, programs: list[Program]) -> list[Any]:
        branches = [self.run(ctx, program) for program in programs]
        failing = ctx.step("collected", retry=Retry.none()).run(self.world.body, "fail")
        return [str(each) for each in await ctx.parallel([*branches, failing], on_error="collect")]

    async def do_fail_fast(self, ctx: Context, programs: list[Program]) -> str:
        branches = [self.run(ctx, program) for program in programs]
        try:
            await ctx.parallel([*branches, ctx.step("fast", retry=Retry.none()).run(self.world.body, "fail")])
        except StepError as error:
            return str(error)
        return "nobody failed"

    async def do_race(self, ctx: Context, programs: list[Program]) -> list[Any]:
        won = await ctx.race(**{f"b{n}": self.run(ctx, program) for n, program in enumerate(programs)})
        return [won.name, won.value]

    async def do_race_sleep(self, ctx: Context, programs: list[Program]) -> Any:
        return await ctx.race(self.run(ctx, programs[0]), ctx.sleep("late", "4h"))

    async def do_race_step(self, ctx: Context, programs: list[Program]) -> Any:
        return await ctx.race(
            ctx.step("runner").run(self.world.body, "ok"),
            self.run(ctx, programs[0]),
            ctx.step("loser", retry=Retry.fixed(3, "1h")).run(self.world.body, "fail"),
        )

    async def do_gather(self, ctx: Context, programs: list[Program]) -> list[Any]:
        return list(await asyncio.gather(*(self.run(ctx, program) for program in programs)))

    async def do_nested(self, ctx: Context, programs: list[Program]) -> list[Any]:
        together: Any = asyncio.gather(*(self.run(ctx, program) for program in programs))
        for _ in range(4):
            together = asyncio.gather(together)
        return list(await together)

    async def do_group(self, ctx: Context, programs: list[Program]) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.run(ctx, program)) for program in programs]
        return [task.result() for task in tasks]

    async def do_tasks(self, ctx: Context, programs: list[Program]) -> list[Any]:
        tasks = [asyncio.create_task(self.run(ctx, program)) for program in programs]
        own = await ctx.step("own").run(self.world.body, "ok")
        return [own, *[await task for task in tasks]]

    async def do_first(self, ctx: Context, programs: list[Program]) -> list[Any]:
        """Which branches came first, again and again."""
        open_ = {asyncio.create_task(self.run(ctx, program), name=str(n)) for n, program in enumerate(programs)}
        seen: list[Any] = []
        while open_:
            done, open_ = await asyncio.wait(open_, return_when=asyncio.FIRST_COMPLETED)
            seen.append(sorted((task.get_name(), task.result()) for task in done))
        return seen

    async def do_queue(self, ctx: Context, programs: list[Program]) -> list[Any]:
        """The order in which the actions of all branches were finished."""
        queue: asyncio.Queue[Any] = asyncio.Queue()

        async def branch(n: int, program: Program) -> None:
            for action in program:
                await queue.put([n, await self.run(ctx, [action])])
            await queue.put(None)

        async with asyncio.TaskGroup() as group:
            for n, program in enumerate(programs):
                group.create_task(branch(n, program))
            seen: list[Any] = []
            ended = 0
            while ended < len(programs):
                item = await queue.get()
                ended += item is None
                seen.append(item)
        return seen

    async def do_as_completed(self, ctx: Context, programs: list[Program]) -> list[Any]:
        branches = [self._numbered(ctx, n, program) for n, program in enumerate(programs)]
        return [await each for each in asyncio.as_completed(branches)]

    async def _numbered(self, ctx: Context, n: int, program: Program) -> list[Any]:
        return [n, await self.run(ctx, program)]

    async def do_abort(self, ctx: Context, programs: list[Program]) -> list[str]:
        """A failed step takes the other branches of its group down, wherever they are."""
        seen = ["nobody failed"]
        try:
            async with asyncio.TaskGroup() as group:
                for program in programs:
                    group.create_task(self.run(ctx, program))
                group.create_task(ctx.step("abort", retry=Retry.none()).run(self.world.body, "fail"))
        except* StepError as errors:
            seen = [str(error) for error in errors.exceptions]
        return seen

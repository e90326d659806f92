"""What random programs found out about runs and branches that are given up: each of these went wrong once."""

import asyncio

from kagzi.core.errors import ChildError, StepError
from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry

from .fake import FakePort, fake_server

BODIES: list[str] = []


async def say(text: str) -> str:
    BODIES.append(text)
    return text


async def fail() -> None:
    raise ConnectionError("no")


async def forever() -> None:
    await asyncio.Event().wait()


async def test_what_a_losing_branch_cleans_up_is_recorded_and_not_done_again() -> None:
    async def tidy(ctx: Context) -> None:
        try:
            await ctx.step("forever").run(forever)
        finally:
            async with ctx.cleanup():
                await ctx.step("tidy").run(say, "tidied")

    @workflow
    async def races(ctx: Context) -> list[str]:
        won = await ctx.race(loser=tidy(ctx), winner=ctx.step("quick").run(say, "quick"))
        try:
            await ctx.parallel(tidy(ctx), ctx.step("fail", retry=Retry.none()).run(fail))
        except StepError as error:
            return [won.name, error.error.message]
        return []

    async with fake_server(races) as server:
        BODIES.clear()
        run = await server.run(races)
        assert run.result == ["winner", "no"]
        assert BODIES == ["quick", "tidied", "tidied"]
        run.status = RunStatus.PENDING
        await server.finish(run, executor=server.new_executor())
        assert run.result == ["winner", "no"]
        assert BODIES == ["quick", "tidied", "tidied"], "a replay executed something"


async def test_an_end_that_follows_from_a_step_that_may_not_begin_is_no_end() -> None:
    """The step, its result and the end of the run travel in one message; the cancellation comes just before it."""

    @workflow
    async def short(ctx: Context) -> str:
        try:
            return await ctx.step("only").run(say, "done")
        finally:
            async with ctx.cleanup():
                await ctx.step("tidy").run(say, "tidied")

    @workflow
    async def shorter(ctx: Context) -> str:
        return await ctx.step("only").run(say, "done")

    for flow in (short, shorter):
        async with fake_server(flow) as server:

            def cancel_before(port: FakePort, what: str) -> None:
                if what in ("before record_step", "before begin_step") and not port.run.cancel_requested:
                    port.run.cancel_requested = True  # its worker has not heard of it

            server.moment = cancel_before
            run = await server.run(flow)
            assert run.status is RunStatus.CANCELLED
            assert set(run.steps) == ({"tidy"} if flow is short else set())


async def test_a_child_that_went_with_its_parent_is_no_failure_to_be_handled() -> None:
    @workflow
    async def child(ctx: Context) -> None:
        await ctx.sleep("long", "1 day")

    @workflow
    async def handles(ctx: Context) -> str:
        try:
            await ctx.child(child)
        except ChildError as error:
            return f"the child was {error.status}"
        return "done"

    @workflow
    async def fails(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.child(child))
            group.create_task(ctx.step("say").run(say, "so"))

    for flow in (handles, fails):
        async with fake_server(flow, child) as server:
            run = server.start(flow)
            server.claim(run)
            await server.until_left(run)
            (the_child,) = server.children_of(run)
            run.cancel_requested = True
            server.cancel(the_child)
            await server.finish(the_child)
            assert the_child.status is RunStatus.CANCELLED
            await server.finish(run)
            assert run.status is RunStatus.CANCELLED, run.output


async def test_a_child_ends_while_its_parent_is_unwound() -> None:
    @workflow
    async def child(ctx: Context) -> str:
        return await ctx.step("say").run(say, "child")

    @workflow
    async def parent(ctx: Context) -> list[str]:
        handle = await ctx.start_child(child)
        return list(await ctx.parallel(handle.result(), ctx.step("say").run(say, "parent"), handle.result()))

    trouble: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: trouble.append(context))
    for passes in range(12):
        async with fake_server(parent, child, latency=lambda: 1) as server:
            run = server.start(parent)
            port = server.claim(run)
            assert port.execution is not None
            while not server.children_of(run):
                server.changes.clear()
                await server.changes.wait()
            server.claim(server.children_of(run)[0])
            for _ in range(passes):
                await asyncio.sleep(0)
            port.execution.abandon("cut")
            for other in server.runs:
                await server.finish(other)
            assert run.result == ["child", "parent", "child"]
    assert trouble == []

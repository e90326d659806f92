"""Children: runs that are steps of another, with their results, failures and ends."""

import asyncio
from typing import Any

import pytest

from kagzi.core.error_details import ErrorKind
from kagzi.core.errors import AlreadyExists, ChildError, InvalidArgument
from kagzi.core.run.commands import StartChild
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server


async def resize(url: str) -> str:
    return url + "?small"


@workflow(timeout="1h")
async def thumbnail(ctx: Context, url: str) -> str:
    if url == "bad":
        raise LookupError("no such picture")
    return await ctx.step("resize").run(resize, url)


@workflow
async def album(ctx: Context, urls: list[str]) -> list[str]:
    cover = await ctx.child(thumbnail, urls[0], id="cover")
    rest = await ctx.parallel(ctx.child(thumbnail, url) for url in urls[1:])
    return [cover, *rest]


async def test_a_child_is_a_run_and_its_result_a_step_of_the_parent() -> None:
    for kept in (0, 10):
        async with fake_server(album, thumbnail, kept_runs_max=kept) as server:
            run = await server.run(album, ["a", "b", "c"])
            assert run.result == ["a?small", "b?small", "c?small"]
            assert run.step_ids == ["thumbnail", "thumbnail#2", "thumbnail#3"]
            assert {step.kind for step in run.steps.values()} == {StepKind.CHILD}
            first = run.begins["thumbnail"]
            assert isinstance(first, StartChild)
            assert (first.start.workflow_id, first.on_close, first.attach) == ("cover", "cancel", False)
            assert first.start.deadline_at is not None
            assert run.begins["thumbnail#3"].parallel_group_id == "parallel"


async def test_a_failed_child_is_an_error_that_names_it_live_and_on_replay() -> None:
    @workflow
    async def careful(ctx: Context) -> list[Any]:
        try:
            await ctx.child(thumbnail, "bad")
        except ChildError as error:
            return [
                error.run_id,
                error.status,
                error.matches(KeyError),
                error.matches(LookupError),
                error.error.message,
            ]
        return []

    async with fake_server(careful, thumbnail, kept_runs_max=0) as server:
        run = await server.run(careful)
        child = server.runs[1]
        expected = [child.run_id, "failed", False, True, "no such picture"]
        assert run.result == expected
        run.status = RunStatus.PENDING
        await server.finish(run)
        assert run.result == expected


async def test_a_child_error_that_leaves_the_function_names_the_step_and_is_final() -> None:
    async with fake_server(album, thumbnail) as server:
        run = await server.run(album, ["bad"])
        assert run.error is not None
        assert (run.error.subject, run.error.subject_id) == ("step", "thumbnail")
        assert run.error.non_retryable
        assert run.error.cause is not None
        assert run.error.cause.type == "LookupError"


async def test_start_child_goes_on_and_hands_out_the_result_later() -> None:
    @workflow
    async def w(ctx: Context) -> list[str]:
        handle = await ctx.start_child(thumbnail, "a", on_close="abandon")
        between = await ctx.step("between").run(resize, "x")
        first, again = await handle.result(), await handle.result()
        return [handle.run_id, between, first, again]

    for kept in (0, 10):
        async with fake_server(w, thumbnail, kept_runs_max=kept) as server:
            run = await server.run(w)
            assert run.result == [server.runs[1].run_id, "x?small", "a?small", "a?small"]
            assert run.begins["thumbnail"].on_close == "abandon"


async def test_a_child_that_ends_while_the_parent_is_busy_reaches_it_there() -> None:
    began, proceed, seen = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def long() -> None:
        began.set()
        await proceed.wait()

    async def watch(ctx: Context) -> str:
        value = await ctx.child(thumbnail, "a")
        seen.set()
        return value

    @workflow
    async def w(ctx: Context) -> str:
        return (await ctx.parallel(watch(ctx), ctx.step("long").run(long)))[0]

    async with fake_server(w, thumbnail) as server:
        run = server.start(w)
        server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        await server.finish_children(run)
        await asyncio.wait_for(seen.wait(), LOADED_MACHINE_S)
        proceed.set()
        await server.until_left(run)
        assert run.result == "a?small"


async def test_an_id_that_is_taken_is_said_so_and_attach_is_asked_for() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        try:
            await ctx.child(thumbnail, "a", id="taken")
        except AlreadyExists as error:
            return error.message
        return ""

    @workflow
    async def attaching(ctx: Context) -> str:
        return await ctx.child(thumbnail, "a", id="mine", on_conflict="attach")

    async with fake_server(w, attaching, thumbnail) as server:
        server.start(thumbnail, "z").workflow_id = "taken"
        run = await server.run(w)
        first = run.result
        assert first.startswith("workflow_id 'taken' belongs to open run ")
        run.status = RunStatus.PENDING
        await server.finish(run)
        assert run.result == first
        attached = await server.run(attaching)
        assert attached.begins["thumbnail"].attach


async def test_a_child_that_loses_a_race_is_cancelled() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        return await ctx.race(ctx.child(thumbnail, "a"), ctx.step("quick").run(resize, "q"))

    async with fake_server(w, thumbnail) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        assert run.result == "q?small"
        assert run.steps["thumbnail"].status is StepStatus.ABANDONED
        assert server.runs[1].status is RunStatus.CANCELLED


async def test_a_cancelled_child_is_told_from_a_failed_one() -> None:
    @workflow
    async def w(ctx: Context) -> list[str]:
        try:
            return [await ctx.child(thumbnail, "a")]
        except ChildError as error:
            return [error.status, error.kind]

    async with fake_server(w, thumbnail) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        server.cancel(server.runs[1])
        server.claim(server.runs[1])
        await server.until_left(server.runs[1])
        await server.finish(run)
        assert run.result == ["cancelled", ErrorKind.CANCELLED]


async def test_labels_priority_and_version_go_with_the_start() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        handle = await ctx.start_child(thumbnail, "a", labels={"team": "a"}, priority=-7, version=2)
        return handle.run_id

    async with fake_server(w, thumbnail) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        start = run.begins["thumbnail"].start
        assert (start.labels, start.priority, start.version) == ({"team": "a"}, -7, "2")


async def test_options_that_cannot_be_are_refused_before_anything_is_sent() -> None:
    @workflow
    async def w(ctx: Context) -> list[str | None]:
        fields: list[str | None] = []
        bad: tuple[dict[str, Any], ...] = (
            *({"labels": {"a": 1}}, {"labels": "a"}),
            *({"priority": 101}, {"priority": "high"}),
        )
        for options in bad:
            with pytest.raises(InvalidArgument) as refused:
                await ctx.child(thumbnail, "a", **options)
            fields.append(refused.value.field)
        with pytest.raises(TypeError, match="a child takes no color"):
            await ctx.child(thumbnail, "a", color="red")  # pyright: ignore[reportCallIssue]
        return fields

    async with fake_server(w, thumbnail) as server:
        run = await server.run(w)
        assert (run.result, run.step_ids) == (["labels", "labels", "priority", "priority"], [])

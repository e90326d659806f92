"""How runs begin and end on a worker: input, output, errors, cancellation, lost leases, a stopping worker."""

import asyncio
import gc
import logging
from dataclasses import dataclass
from typing import Any, cast

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.errors import InvalidArgument
from kagzi.core.run.commands import CompleteRun, CompleteStep, RecordStep
from kagzi.core.states import RunStatus, StepKind
from kagzi.sdk.worker.registry import Registry
from kagzi.sdk.worker.worker import Worker
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import FakePort, fake_server, refused


@dataclass
class Order:
    user_id: int
    items: list[str]


@workflow
async def take_order(ctx: Context, order: Order) -> int:
    return len(order.items)


async def nothing() -> None: ...


@pytest.mark.parametrize(
    ("data", "field", "text"),
    [
        (b'{"user_id": "x", "items": []}', "$.user_id", "Expected int, got str (at $.user_id)"),
        (b'{"user_id": 1, "items": [1]}', "$.items[0]", "Expected str, got int (at $.items[0])"),
        (b"null", "$", "Expected object, got null (at $)"),
        (b"{", "$", "Input data was truncated (at $)"),
    ],
)
async def test_input_that_does_not_fit_fails_the_run_at_once(data: bytes, field: str, text: str) -> None:
    async with fake_server(take_order) as server:
        run = server.start(take_order, raw=data)
        await server.finish(run)
        assert run.error is not None
        assert run.error.message == f"input of workflow 'take-order' does not fit: {text}"
        assert (run.error.subject, run.error.subject_id) == ("field", field)
        assert (run.error.kind, run.error.non_retryable) == (ErrorKind.PERMANENT, True)


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (int, "7", "does not fit its declared type int: Expected int, got str (at $)"),
        (None, 7, "does not fit its declared type None: Expected null, got int (at $)"),
        (list[Order], [{"user_id": 1}], "does not fit its declared type list["),
        (Order, {"user_id": "x", "items": []}, "Expected int, got str (at $.user_id)"),
    ],
)
async def test_an_output_that_nobody_could_read_fails_the_run_instead_of_completing_it(
    annotation: Any, value: Any, text: str
) -> None:
    async def lies(ctx: Context) -> Any:
        return value

    lies.__annotations__["return"] = annotation
    liar = workflow(lies)
    async with fake_server(liar) as server:
        run = server.start(liar)
        await server.finish(run)
        assert run.status is RunStatus.FAILED
        assert run.error is not None
        assert run.error.message.startswith("output of workflow 'lies' does not fit")
        assert text in run.error.message
        assert (run.error.kind, run.error.non_retryable) == (ErrorKind.PERMANENT, True)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int], (1, 2)),
        (tuple[int, int], [1, 2]),
        (float, 3),
        (Order, {"user_id": 1, "items": []}),
        (dict[str, int], {"a": 1}),
        (int | None, None),
        (Any, object.__name__),
        (object, [1]),
    ],
)
async def test_an_output_that_is_read_as_declared_is_taken(annotation: Any, value: Any) -> None:
    async def dangling(ctx: Context) -> Any:
        return value

    dangling.__annotations__["return"] = annotation
    flow = workflow(dangling)
    async with fake_server(flow) as server:
        run = server.start(flow)
        await server.finish(run)
        assert run.status is RunStatus.COMPLETED, run.error


async def test_a_run_does_not_go_on_with_an_input_that_does_not_fit() -> None:
    @workflow
    async def goes_on(ctx: Context, n: int) -> None:
        ctx.continue_as_new("not a number")

    async with fake_server(goes_on) as server:
        run = server.start(goes_on, 1)
        await server.finish(run)
        assert run.error is not None
        assert run.error.message.startswith("input of workflow 'goes-on' does not fit its declared type int")


async def test_workflows_without_input_and_with_a_default() -> None:
    @workflow
    async def none(ctx: Context) -> str:
        return "none"

    @workflow
    async def default(ctx: Context, name: str = "you") -> str:
        return name

    async with fake_server(none, default) as server:
        assert (await server.run(none)).result == "none"
        assert (await server.run(none, None)).result == "none"
        assert (await server.run(default)).result == "you"
        assert (await server.run(default, "me")).result == "me"
        refused = await server.run(none, 5)
        assert refused.error is not None
        assert refused.error.message == "workflow 'none' takes no input, but the run has one."


async def test_an_error_of_the_function_is_recorded_with_its_cause() -> None:
    @workflow
    async def broken(ctx: Context) -> None:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise RuntimeError("outer\0") from error

    async with fake_server(broken) as server:
        run = await server.run(broken)
        assert run.error is not None
        assert (run.error.type, run.error.message, run.error.non_retryable) == ("RuntimeError", "outer\\0", False)
        assert run.error.cause is not None
        assert run.error.cause.type == "KeyError"
        assert "LookupError" in run.error.cause.bases


async def test_a_group_of_step_errors_names_the_step() -> None:
    async def fails() -> None:
        raise InvalidArgument("bad")

    @workflow
    async def w(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.step("fails").run(fails))

    async with fake_server(w) as server:
        run = server.start(w)
        server.refuse = lambda command: None
        await server.finish(run)
        assert run.error is not None
        assert (run.error.subject, run.error.subject_id, run.error.non_retryable) == ("step", "fails", True)
        assert "InvalidArgument: bad" in run.error.message


async def test_a_kind_that_does_not_fit_the_history_pauses_the_run_with_a_problem() -> None:
    name = "x"

    @workflow
    async def w(ctx: Context) -> None:
        try:
            if changed:
                await ctx.step(name).run(nothing)
            else:
                await ctx.sleep(name, "1h")
        except Exception:  # noqa: BLE001  the subject
            pytest.fail("the code must not see it")

    changed = False
    async with fake_server(w, kept_runs_max=0) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        assert run.steps["x"].kind is StepKind.SLEEP
        changed = True
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.PAUSED
        assert run.problem is not None
        assert (run.problem.kind, run.problem.subject, run.problem.subject_id) == (
            ErrorKind.NONDETERMINISM,
            "step",
            "x",
        )
        assert run.problem.message.startswith("'x' is a function in the code, but this run recorded it as a sleep.")
        assert f"{__file__}:" in run.problem.message


async def test_tasks_that_are_open_when_the_function_returns_are_ended() -> None:
    endings: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            endings.append("body")

    async def aside(ctx: Context) -> None:
        try:
            await ctx.sleep("day", "1 day")
        finally:
            endings.append("sleep")

    @workflow
    async def hasty(ctx: Context) -> str:
        tasks = [asyncio.create_task(ctx.step("forever").run(forever)), asyncio.create_task(aside(ctx))]
        await ctx.step("nothing").run(nothing)
        return f"done, {len(tasks)} open"

    async with fake_server(hasty) as server:
        run = await server.run(hasty)
        assert run.result == "done, 2 open"
        assert sorted(endings) == ["body", "sleep"]


async def test_cancel_reaches_a_running_step_and_the_run_answers() -> None:
    began, seen = asyncio.Event(), list[str]()

    async def long() -> None:
        began.set()
        await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> None:
        try:
            await ctx.step("long").run(long)
        except asyncio.CancelledError as error:
            seen.append(str(error))
            with pytest.raises(asyncio.CancelledError):
                await ctx.step("late").run(nothing)
            raise

    async with fake_server(w) as server:
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        cancel(run, port)
        await server.until_left(run)
        assert run.status is RunStatus.CANCELLED
        assert run.error is not None
        assert (run.error.kind, run.error.message) == (ErrorKind.CANCELLED, "not needed")
        assert seen == ["not needed"]
        assert "late" not in run.steps


@pytest.mark.parametrize("kept", [0, 10])
async def test_a_sleeping_run_is_cancelled_where_it_sleeps(kept: int) -> None:
    where: list[str] = []

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("nothing").run(nothing)
        where.append("before")
        try:
            await asyncio.gather(ctx.sleep("a", "1h"), ctx.sleep("b", "2h"))
        except asyncio.CancelledError:
            where.append("asleep")
            raise

    async with fake_server(w, kept_runs_max=kept, kept_s=10_000) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        where.clear()
        run.cancel_requested = True
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.CANCELLED
        assert where[-1] == "asleep"


async def test_a_function_that_completes_although_it_is_cancelled_is_complete() -> None:
    began = asyncio.Event()

    async def long() -> None:
        began.set()
        await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> str:
        try:
            await ctx.step("long").run(long)
        except asyncio.CancelledError:
            return "cleaned up"
        return ""

    async with fake_server(w) as server:
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        cancel(run, port)
        await server.until_left(run)
        assert (run.status, run.result) == (RunStatus.COMPLETED, "cleaned up")


async def test_a_lost_lease_stops_everything_and_records_nothing() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def long() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    @workflow
    async def w(ctx: Context) -> None:
        await asyncio.gather(ctx.step("long").run(long), ctx.sleep("sleep", "1h"), asyncio.sleep(3600))

    async with fake_server(w) as server:
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        await asyncio.sleep(0)
        log = list(run.log)
        assert port.execution is not None
        port.execution.abandon("its lease was lost")
        await asyncio.wait_for(port.closed.wait(), LOADED_MACHINE_S)
        assert ended.is_set()
        assert run.log == log
        assert server.executor.active == 0


@pytest.mark.parametrize("code", [ErrorCode.LEASE_LOST, ErrorCode.TIMEOUT])
@pytest.mark.parametrize("whole", [True, False])
async def test_a_refused_lease_abandons_the_run(code: ErrorCode, whole: bool) -> None:
    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("a").run(nothing)
        await ctx.step("b").run(nothing)

    async with fake_server(w) as server:
        server.records_whole_steps = whole
        server.refuse = lambda command: refused(code) if isinstance(command, RecordStep | CompleteStep) else None
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(port.closed.wait(), LOADED_MACHINE_S)
        assert run.log == ([] if whole else ["BeginStep a"])


async def test_an_output_the_server_does_not_take_fails_the_run() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        return "too much"

    async with fake_server(w) as server:
        server.refuse = lambda command: (
            refused(ErrorCode.RESOURCE_EXHAUSTED, "too large") if isinstance(command, CompleteRun) else None
        )
        run = await server.run(w)
        assert run.error is not None
        assert (run.error.message, run.error.non_retryable) == ("too large", True)


async def test_a_stopping_worker_hands_its_runs_back() -> None:
    began = asyncio.Event()

    async def long() -> None:
        began.set()
        await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("long").run(long)

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        server.executor.release_all("the worker stops")
        await asyncio.wait_for(server.executor.drained(), LOADED_MACHINE_S)
        assert run.status is RunStatus.PENDING
        assert run.log == ["BeginStep long", "ReleaseRun"]


async def test_a_run_of_an_unknown_type_is_handed_back(caplog: pytest.LogCaptureFixture) -> None:
    async with fake_server() as server:
        run = server.start("unknown")
        with caplog.at_level(logging.ERROR):
            server.claim(run)
            await server.until_left(run)
        assert run.status is RunStatus.PENDING
        assert "no workflow 'unknown' version '1'" in caplog.text


async def test_time_chance_and_identity_are_the_same_on_replay() -> None:
    seen: list[list[Any]] = []

    @workflow
    async def w(ctx: Context) -> list[str]:
        facts = [ctx.now(), ctx.uuid(), ctx.uuid(), ctx.random()]
        await ctx.step("a").run(nothing)
        facts += [ctx.now(), ctx.uuid()]
        await asyncio.gather(ctx.step("b").run(nothing), other(ctx, facts))
        facts += [ctx.now(), ctx.random()]
        seen.append(facts)
        await ctx.sleep("hour", "1h")
        return [
            ctx.run_id,
            ctx.workflow_id,
            ctx.namespace,
            ctx.workflow_type,
            ctx.version,
            str(ctx.attempt),
            *ctx.labels,
        ]

    async def other(ctx: Context, facts: list[Any]) -> None:
        facts.append(ctx.uuid())
        await ctx.step("c").run(nothing)
        facts += [ctx.now(), ctx.uuid()]

    async with fake_server(w, kept_runs_max=0) as server:
        run = await server.run(w)
        assert len(seen) >= 2
        assert all(facts == seen[0] for facts in seen)
        ids = [fact for fact in seen[0] if not hasattr(fact, "year")]
        assert len(set(ids)) == len(ids)
        assert run.result == [run.run_id, "wid", "default", "w", "1", "1", "team"]
        assert not w.runs_ahead  # found out by the first run: its time is needed after a step


async def test_the_log_is_silent_on_replay(caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def w(ctx: Context) -> bool:
        await ctx.step("a").run(nothing)
        ctx.log.info("after %s", "a")
        await ctx.step("b").run(nothing)
        ctx.log.warning("after b", extra={"more": 1})
        await ctx.sleep("hour", "1h")
        ctx.log.info("after the hour")
        return ctx.is_replaying

    with caplog.at_level(logging.INFO, logger="kagzi.workflow"):
        async with fake_server(w, kept_runs_max=0) as server:
            run = await server.run(w)
    assert [record.getMessage() for record in caplog.records] == ["after a", "after b", "after the hour"]
    assert all(getattr(record, "run_id") == run.run_id for record in caplog.records)  # noqa: B009  set by the adapter
    assert run.result is False


async def test_a_long_history_is_fetched_in_pages() -> None:
    bodies: list[int] = []

    async def body(n: int) -> int:
        bodies.append(n)
        return n

    @workflow
    async def w(ctx: Context) -> int:
        total = 0
        for n in range(20):
            total += await ctx.step("body").run(body, n)
        await ctx.sleep("hour", "1h")
        return total

    async with fake_server(w) as server:
        run = server.start(w)
        await server.finish(run, page=5)
        assert (run.result, bodies, run.lease) == (190, list(range(20)), 2)


async def test_nothing_is_left_behind() -> None:
    @workflow
    async def w(ctx: Context) -> None:
        tasks = [asyncio.create_task(ctx.sleep("s", "1h")) for _ in range(3)]
        await asyncio.gather(*tasks, ctx.step("a").run(nothing))

    async with fake_server(w, kept_s=10_000) as server:
        for _ in range(3):
            server.claim(server.start(w))
        for run in server.runs:
            await server.until_left(run)
        assert server.executor.kept == 3
        server.executor.release_all("over")
        for _ in range(20):
            await asyncio.sleep(0)
        gc.collect()
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


def test_registrations_that_cannot_work_are_refused() -> None:
    with pytest.raises(
        InvalidArgument, match="'take-order' version 1 is given more than once: the same workflow twice"
    ):
        Registry([take_order, take_order])
    with pytest.raises(InvalidArgument, match=r"must take \(ctx\) or \(ctx, input\)"):
        workflow(three)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(InvalidArgument, match="must be an `async def` function"):
        Registry([("sync", len)])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match=r"is not a list\. Write workflows=\[take_order\]"):
        Worker(":memory:", workflows=cast("Any", take_order))
    with pytest.raises(InvalidArgument, match=r"is not a workflow\. Decorate the function"):
        Registry([three])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


async def three(ctx: Context, a: int, b: int) -> int:
    return a + b


def cancel(run: Any, port: FakePort) -> None:
    run.cancel_requested = True
    assert port.execution is not None
    port.execution.cancel("not needed")

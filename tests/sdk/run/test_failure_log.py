"""Failures are seen: one line for each failed attempt and each failed run, with the user's own frames, and what happens
next."""

import asyncio
import io
import logging
import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from kagzi.core.duration import parse_duration
from kagzi.core.error_details import ErrorCode, ErrorDetail
from kagzi.core.errors import InvalidArgument, NonRetryable, RunError, StepError
from kagzi.core.states import RunStatus
from kagzi.sdk.worker.failure_log import in_time, run_failed
from kagzi.sdk.worker.tracebacks import shortened_exception
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.failures import describe
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.signals import Signal
from kagzi.v1 import worker_pb2 as pb

from .fake import FakeServer, fake_server

PRICES: dict[str, int] = {}


def price(item: str) -> int:
    return PRICES[item]


async def price_later(item: str) -> int:
    return await asyncio.wait_for(asyncio.to_thread(price, item), 60)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[logging.LogRecord]]:
    """What the worker has said so far, from warnings up."""

    def so_far() -> list[logging.LogRecord]:
        return [each for each in caplog.records if each.name == "kagzi.worker" and each.levelno >= logging.WARNING]

    return so_far


Lines = Callable[[], list[logging.LogRecord]]


def texts(records: list[logging.LogRecord]) -> list[tuple[str, str]]:
    """Level and message, without the run they begin with and the time that was left when the answer came."""
    logged = ((each.levelname, each.getMessage().partition(": ")[2]) for each in records)
    return [(level, re.sub(r"retrying (in [\d.]+ m?s|at once)", "retrying SOON", text)) for level, text in logged]


async def test_each_failed_attempt_is_one_line_that_says_what_happens_next(lines: Lines) -> None:
    @workflow
    async def checkout(ctx: Context) -> int:
        return await ctx.step("price", retry=Retry.fixed(3, "2s").retry_on([KeyError])).run(price_later, "tea")

    async with fake_server(checkout) as server:
        run = await server.run(checkout)
    assert run.status is RunStatus.FAILED
    retried, again, last, failed = lines()
    assert texts([retried, again, last, failed]) == [
        ("WARNING", "step 'price' failed, attempt 1 of 3: retrying SOON. KeyError: 'tea'"),
        ("WARNING", "step 'price' failed, attempt 2 of 3: retrying SOON. KeyError: 'tea'"),
        ("ERROR", "step 'price' failed, attempt 3 of 3: no attempts left. KeyError: 'tea'"),
        ("ERROR", "the run failed in step 'price'. KeyError: 'tea'"),
    ]
    assert retried.getMessage().startswith(f"checkout 'wid', run {run.run_id}: ")
    assert vars(retried).items() >= {"run_id": run.run_id, "workflow_id": "wid", "step": "price", "attempt": 1}.items()
    assert vars(failed).items() >= {"run_id": run.run_id, "workflow_type": "checkout"}.items()
    for each in (retried, again, last):
        assert each.exc_info is not None
        assert isinstance(each.exc_info[1], KeyError)  # for those who collect exceptions
    assert failed.exc_info is None, "the step's own line has the traceback"


async def test_the_traceback_is_the_users_and_the_rest_is_hidden(lines: Lines) -> None:
    @workflow
    async def w(ctx: Context) -> int:
        return await ctx.step("price", retry=Retry.none()).run(price_later, "tea")

    stream = io.StringIO()
    handler = logging.StreamHandler(
        stream
    )  # as a program has it that knows nothing of us; the last resort of logging, too
    logging.getLogger().addHandler(handler)
    try:
        async with fake_server(w) as server:
            run = await server.run(w)
    finally:
        logging.getLogger().removeHandler(handler)
    shown = [line for line in stream.getvalue().splitlines() if line.startswith("  | ")]
    assert shown[0] == "  | Traceback (most recent call last):"
    assert re.fullmatch(r"  \|   \.\.\. \d frames? of kagzi hidden", shown[1])
    assert "in price_later" in shown[2]
    assert re.search(r"\.\.\. \d+ frames of asyncio hidden", shown[-5])
    assert "in price" in shown[-4]
    assert "PRICES[item]" in shown[-3]
    assert shown[-1] == "  | KeyError: 'tea'"
    files = re.findall(r'File "([^"]+)"', stream.getvalue())
    assert set(files) == {__file__}
    assert run.error is not None
    assert "of kagzi hidden" in run.error.traceback


async def test_a_replay_logs_nothing_again(lines: Lines) -> None:
    @workflow
    async def patient(ctx: Context) -> str:
        for name in ("first", "second"):
            try:
                await ctx.step(name, retry=Retry.none()).run(price, "tea")
            except StepError:
                ctx.log.warning("handled %s", name)
            await ctx.sleep("a day", "1d")
        return "done"

    async with fake_server(patient, kept_runs_max=0) as server:
        run = await server.run(patient)
        assert (run.result, run.lease) == ("done", 3)
        assert texts(lines()) == [
            ("ERROR", "step 'first' failed, attempt 1 of 1: no attempts left. KeyError: 'tea'"),
            ("ERROR", "step 'second' failed, attempt 1 of 1: no attempts left. KeyError: 'tea'"),
        ]
        server.executor = server.new_executor()
        run.status = RunStatus.PENDING
        await server.finish(run)
        assert len(lines()) == 2


async def test_what_runs_say_themselves_is_not_said_again_either(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    @workflow
    async def patient(ctx: Context) -> None:
        for number in range(3):
            ctx.log.info("day %d", number, extra={"day": number})
            await ctx.sleep("a day", "1d")

    async with fake_server(patient, kept_runs_max=0) as server:
        run = await server.run(patient)
    logged = [each for each in caplog.records if each.name == "kagzi.workflow"]
    assert [each.getMessage() for each in logged] == ["day 0", "day 1", "day 2"]
    assert vars(logged[2]).items() >= {"run_id": run.run_id, "workflow_id": "wid", "day": 2}.items()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "at once"), (0, "at once"), (0.25, "in 250 ms"), (2, "in 2.0 s"), (60, "in 60 s"), (3600, "in 60 min")],
)
def test_how_long_it_is_until_a_retry(seconds: float, text: str) -> None:
    assert in_time(int(seconds * 1_000_000)) == text


async def breaks(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "retry", "what_next"),
    [
        (
            NonRetryable("stolen"),
            None,
            "attempt 1 of 3: not retried: NonRetryable is not retryable. NonRetryable: stolen",
        ),
        (
            OSError("x"),
            Retry.exponential(5, non_retryable=["OSError"]),
            "attempt 1 of 5: not retried: non_retryable of its retry policy lists OSError",
        ),
        (OSError("x"), Retry.none(), "attempt 1 of 1: no attempts left. OSError: x"),
        (OSError("a\nb\x1b[2J"), Retry.none(), r"no attempts left. OSError: a\nb\x1b[2J"),
        (OSError("y" * 5_000), Retry.none(), "yyy ..."),
    ],
)
async def test_why_there_are_no_more_attempts(
    lines: Lines, error: BaseException, retry: Retry | None, what_next: str
) -> None:
    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("charge", retry=retry).run(breaks, error)

    async with fake_server(w) as server:
        await server.run(w)
    step, failed = lines()
    assert (step.levelname, failed.levelname) == ("ERROR", "ERROR")
    assert what_next in step.getMessage()
    assert len(step.getMessage()) < 1_000
    assert step.getMessage().isprintable()


async def test_without_end_there_is_no_last_attempt(lines: Lines) -> None:
    tries = iter([OSError(), OSError(), None])

    async def twice() -> None:
        if (error := next(tries)) is not None:
            raise error

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("call", retry=Retry.forever().initial("1ms").jittered(0)).run(twice)

    async with fake_server(w) as server:
        await server.run(w)
    assert texts(lines()) == [
        ("WARNING", "step 'call' failed, attempt 1: retrying SOON. OSError"),
        ("WARNING", "step 'call' failed, attempt 2: retrying SOON. OSError"),
    ]


async def test_an_attempt_that_could_not_be_recorded_is_seen_all_the_same(lines: Lines) -> None:
    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("charge", retry=Retry.none()).run(breaks, OSError("x"))

    def refuse(command: Any) -> ErrorDetail | None:
        is_failure = type(command).__name__ == "FailStep"
        return ErrorDetail(code=ErrorCode.LEASE_LOST, message="its lease was lost") if is_failure else None

    async with fake_server(w) as server:
        server.refuse = refuse
        port = server.claim(server.start(w))
        await asyncio.wait_for(port.closed.wait(), 20)
    lost, failed = lines()
    assert "is abandoned: its lease was lost" in lost.getMessage()
    [(level, text)] = texts([failed])
    assert level == "WARNING"
    assert text.startswith("step 'charge' failed, attempt 1 of 1: not recorded, since the run was interrupted")
    assert failed.exc_info is not None


async def test_a_failing_body_is_one_line_with_its_traceback(lines: Lines) -> None:
    @workflow
    async def w(ctx: Context) -> None:
        try:
            await ctx.step("price", retry=Retry.none()).run(price, "tea")
        except StepError as error:
            raise ValueError("no tea") from error

    async with fake_server(w) as server:
        run = await server.run(w)
    step, failed = lines()
    assert texts([failed]) == [("ERROR", "the run failed. ValueError: no tea")]
    assert failed.exc_text is not None
    assert 'raise ValueError("no tea") from error' in failed.exc_text
    # The client sees both: where the workflow raised, and what the step did.
    assert run.error is not None
    shown = "".join(traceback.format_exception(RunError.of(run.run_id, "failed", run.error)))
    assert shown.count("return PRICES[item]") == 1
    assert shown.index("return PRICES[item]") < shown.index('raise ValueError("no tea") from error')
    assert step.levelname == "ERROR"


def test_of_a_bug_in_kagzi_every_frame_is_shown() -> None:
    try:
        parse_duration("soon")
    except InvalidArgument as error:
        bug = error.with_traceback(None if error.__traceback__ is None else error.__traceback__.tb_next)
    shown = shortened_exception(bug)
    assert "in parse_duration" in shown
    assert "hidden" not in shown


def test_a_run_that_is_retried_as_a_whole_says_when(lines: Lines) -> None:
    task = pb.Task(run_id="r-1", workflow_id="order-1", workflow_type="checkout", attempt=2)
    error = OSError("x")
    run_failed(task, error, describe(error), 3_000_000)
    [line] = lines()
    assert (line.levelname, line.getMessage()) == (
        "WARNING",
        "checkout 'order-1', run r-1: the run failed, attempt 2: retrying in 3.0 s. OSError: x",
    )


async def test_a_group_shows_what_is_in_it(lines: Lines) -> None:
    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(price_later("tea"))

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("both", retry=Retry.none()).run(both)

    async with fake_server(w) as server:
        run = await server.run(w)
    step, _ = lines()
    assert step.exc_text is not None
    assert "return PRICES[item]" in step.exc_text
    assert run.error is not None
    assert "return PRICES[item]" in "".join(traceback.format_exception(RunError.of("r", "failed", run.error)))


async def test_a_child_that_fails_has_lines_of_its_own(lines: Lines) -> None:
    @workflow
    async def child(ctx: Context) -> None:
        await ctx.step("price", retry=Retry.none()).run(price, "tea")

    @workflow
    async def parent(ctx: Context) -> None:
        await ctx.child(child)

    async with fake_server(parent, child) as server:
        run = await server.run(parent)
    assert [each.getMessage().partition(",")[0] for each in lines()] == ["child 'wid'", "child 'wid'", "parent 'wid'"]
    assert lines()[2].exc_info is None
    assert run.error is not None
    shown = "".join(traceback.format_exception(RunError.of(run.run_id, "failed", run.error)))
    assert shown.count("return PRICES[item]") == 1


async def test_runs_that_are_paused_for_their_code_or_a_signal_are_named_with_what_to_do(lines: Lines) -> None:
    proceed = Signal("go", int)

    @workflow("flow")
    async def before(ctx: Context) -> None:
        await ctx.step("one").run(lambda: 1)
        await ctx.wait_for(proceed)

    @workflow("flow")
    async def after(ctx: Context) -> None:
        await ctx.step("another").run(lambda: 1)

    async with fake_server(before, kept_runs_max=0) as server:
        diverging, misfit = server.start(before), server.start(before)
        for run in (diverging, misfit):
            server.claim(run)
            await server.until_left(run)
        server.signal(misfit, "go", "no number")
        server.claim(misfit)
        await server.until_left(misfit)
        other = FakeServer(after)
        other.runs.append(diverging)
        other.claim(diverging)
        await other.until_left(diverging)
        await other.executor.drained()
    misfit_line, divergence = (each.getMessage() for each in lines())
    assert "is paused, because a signal's value does not fit: the value of signal 'go'" in misfit_line
    assert "is paused, because its code does not fit its history: step 'another'" in divergence
    for run, line in ((misfit, misfit_line), (diverging, divergence)):
        assert line.startswith(f"flow 'wid', run {run.run_id} is paused")
        assert line.endswith(f"See: kagzi explain {run.run_id}")


async def test_a_run_that_is_cancelled_has_not_failed(lines: Lines) -> None:
    began = asyncio.Event()

    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("forever").run(forever)

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await asyncio.wait_for(began.wait(), 20)
        server.cancel(run)
        await server.until_left(run)
        assert run.status is RunStatus.CANCELLED
    assert lines() == []

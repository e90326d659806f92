"""What crash_everywhere does with a workflow, its mocks and its environment; the marker."""

import asyncio
import itertools
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kagzi import Context, Retry, RetryAfter, Run, RunError, Signal, Workflow, workflow
from kagzi.sdk.execution.calls import steps
from kagzi.sdk.execution.ledger import Ledger
from kagzi.sdk.execution.run_execution import RunExecution
from kagzi.sdk.execution.scopes import Scope
from kagzi.sdk.execution.timed_waits import TimedWaits
from kagzi.testing import NotReplaySafe, TestEnv

pytest_plugins = ["pytester"]
answer = Signal("answer", str)


async def fetch(item: str) -> str:
    return item.upper()


def fetch_in_thread(item: str) -> str:
    return item.lower()


@workflow
async def child(ctx: Context, item: str) -> str:
    return await ctx.step("fetch").run(fetch, item)


@workflow
async def everything(ctx: Context, item: str) -> list[str]:
    a, b = await ctx.parallel(ctx.step("fetch").run(fetch, item), ctx.step("thread").run(fetch_in_thread, item))
    await ctx.sleep("pause", "1h")
    reply = await ctx.wait_for(answer)
    return [a, b, reply, await ctx.child(child, item), str(ctx.uuid()), ctx.run_id, str(ctx.random())]


async def test_every_boundary_is_named_and_hit(kagzi_env: TestEnv) -> None:
    report = await kagzi_env.crash_everywhere(everything, "Kiwi", signals=[(answer, "yes")])
    expected = [
        f"{moment} {call}"
        for call in ("step 'fetch'", "step 'thread'", "sleep 'pause'", "signal 'answer'", "child 'child'")
        for moment in ("before", "in", "after")
    ]
    own = [each for each in report.boundaries if " of child " not in each]
    assert sorted(own) == sorted(expected)
    assert len([each for each in report.boundaries if "step 'fetch' of child child (" in each]) == 3
    assert report.kills > len(report.boundaries)
    assert not report.skipped
    assert report.result[:4] == ["KIWI", "kiwi", "yes", "KIWI"]
    assert str(report).startswith("workflow 'everything' is replay-safe: 18 boundaries, ")


def replaced_parts() -> list[object]:
    parts = [(RunExecution, "__init__ take finish diverge"), (Scope, "allot derive"), (Ledger, "know")]
    methods = [getattr(owner, name) for owner, names in parts for name in names.split()]
    filters = [list(logging.getLogger(name).filters) for name in ("kagzi.worker", "kagzi.engine")]
    return [*methods, TimedWaits.__dict__["_add"], steps.perform, sys.getprofile(), sys.gettrace(), filters]


async def test_nothing_is_left_in_the_process(kagzi_env: TestEnv) -> None:
    await kagzi_env.run(child, "a")  # the first server of a process guards its log from then on
    before = replaced_parts()
    await kagzi_env.crash_everywhere(child, "a")
    assert replaced_parts() == before


async def test_mocks_are_the_same_in_every_run(kagzi_env: TestEnv) -> None:
    calls = kagzi_env.mock("fetch", raises=[TimeoutError(), RetryAfter("later", "1h")], returns="mocked")
    report = await kagzi_env.crash_everywhere(child, "a")
    assert report.result == "mocked"
    assert calls == [("a",)] * 3  # as after the undisturbed run


@workflow
async def fails(ctx: Context, item: str) -> str:
    await ctx.step("fetch", retry=Retry.none()).run(fetch, item)
    raise ValueError(f"no {item}")


@pytest.mark.parametrize("meant", [True, "ValueError: no kiwi"])
async def test_a_run_may_fail_if_it_is_meant_to_and_always_does(kagzi_env: TestEnv, meant: bool | str) -> None:
    report = await kagzi_env.crash_everywhere(fails, "kiwi", fails=meant)
    assert report.ok
    assert "ValueError: no kiwi" in report.failed
    assert str(report).startswith("workflow 'fails' is replay-safe: ")


async def test_a_run_that_fails_fails_the_test_and_its_error_is_in_the_first_line(kagzi_env: TestEnv) -> None:
    with pytest.raises(NotReplaySafe) as caught:
        await kagzi_env.crash_everywhere(fails, "kiwi")
    text = str(caught.value).splitlines()
    assert text[0] == "workflow 'fails' failed: ValueError: no kiwi"
    assert "fails=True" in text[1]
    assert text[3].startswith("Apart from that, workflow 'fails' is replay-safe: ")
    report = await kagzi_env.crash_everywhere(fails, "kiwi", check=False)
    assert (report.ok, report.findings) == (False, [])


async def test_a_run_that_ends_otherwise_than_it_is_meant_to_fails_the_test(kagzi_env: TestEnv) -> None:
    with pytest.raises(NotReplaySafe, match=r"no kiwi\n.* meant to fail otherwise: 'LookupError'"):
        await kagzi_env.crash_everywhere(fails, "kiwi", fails="LookupError")
    with pytest.raises(NotReplaySafe, match=r"workflow 'child' was meant to fail \(True\), and did not"):
        await kagzi_env.crash_everywhere(child, "a", fails=True)


@workflow
async def fails_and_reads_the_clock(ctx: Context, item: str) -> str:
    await ctx.step("fetch", retry=Retry.none()).run(fetch, f"{item} at {datetime.now(UTC)}")
    raise ValueError(f"no {item}")


@pytest.mark.filterwarnings("ignore::kagzi.KagziWarning")
async def test_of_a_run_that_fails_and_is_not_safe_both_are_said(kagzi_env: TestEnv) -> None:
    with pytest.raises(NotReplaySafe) as caught:
        await kagzi_env.crash_everywhere(fails_and_reads_the_clock, "kiwi")
    text = str(caught.value).splitlines()
    assert text[0] == "workflow 'fails-and-reads-the-clock' failed: ValueError: no kiwi"
    assert text[3].startswith("workflow 'fails-and-reads-the-clock' is not replay-safe (found in ")
    assert caught.value.report.findings[0].kind == "clock"


@workflow
async def says_when(ctx: Context, item: str) -> str:
    await ctx.sleep("pause", "1h")
    await ctx.step("fetch").run(fetch, item)
    return f"{item} at {ctx.now().timestamp()}"


async def test_what_counts_as_the_same_result(kagzi_env: TestEnv) -> None:
    report = await kagzi_env.crash_everywhere(says_when, "kiwi", same=lambda a, b: a.split()[0] == b.split()[0])
    assert report.ok


async def test_a_run_can_be_driven(kagzi_env: TestEnv) -> None:
    async def drive(env: TestEnv, run: Run[list[str]]) -> None:
        await env.advance("30m")
        await run.signal(answer, "driven")

    report = await kagzi_env.crash_everywhere(everything, "a", drive=drive)
    assert report.result[2] == "driven"


@workflow
async def waits_in_vain(ctx: Context, item: str) -> str:
    return await ctx.wait_for(answer)


async def test_a_signal_that_is_not_given_is_named(kagzi_env: TestEnv) -> None:
    report = await kagzi_env.crash_everywhere(waits_in_vain, "a", check=False)
    assert report.findings[0].kind == "stuck"
    assert "answer" in report.findings[0].message


@workflow
async def first_of_two(ctx: Context, item: str) -> str:
    async def ask(name: str) -> str:
        return await ctx.step(name).run(fetch, name)

    tasks = [asyncio.create_task(ask("a")), asyncio.create_task(ask("b"))]
    winner = await next(iter(asyncio.as_completed(tasks)))
    await asyncio.wait(tasks)
    return winner


async def test_an_order_that_matters_is_named_unless_it_is_meant_to(kagzi_env: TestEnv) -> None:
    with pytest.raises(NotReplaySafe, match="any_order=False"):
        await kagzi_env.crash_everywhere(first_of_two, "x")
    assert (await kagzi_env.crash_everywhere(first_of_two, "x", any_order=False)).ok


@workflow
async def suppressed(ctx: Context, item: str) -> str:
    # kagzi: ignore[clock] only for people
    ctx.set_status(f"begun at {datetime.now(UTC)}")
    return await ctx.step("fetch").run(fetch, item)


@pytest.mark.filterwarnings("ignore::kagzi.KagziWarning")
async def test_a_finding_can_be_suppressed_with_a_reason(kagzi_env: TestEnv) -> None:
    assert (await kagzi_env.crash_everywhere(suppressed, "a")).ok


@workflow
async def sends_a_stamp(ctx: Context, item: str) -> str:
    stamp = next(_stamps)
    # kagzi: ignore[argument] messages carry the time at which they are made
    await ctx.step("fetch").run(fetch, f"{item} {stamp}")
    return item


@workflow
async def returns_a_stamp(ctx: Context, item: str) -> str:
    await ctx.step("fetch").run(fetch, item)
    return f"{item} {next(_stamps)}"  # kagzi: ignore[result] it is the time of the message


@workflow
# kagzi: ignore[stuck] nobody answers in this test
async def never_answered(ctx: Context, item: str) -> str:
    return await ctx.wait_for(answer)


_stamps = itertools.count()


@pytest.mark.parametrize(
    "accepted", [sends_a_stamp, returns_a_stamp, never_answered], ids=["argument", "result", "stuck"]
)
async def test_consequences_can_be_suppressed_as_well(kagzi_env: TestEnv, accepted: Workflow[str, str]) -> None:
    report = await kagzi_env.crash_everywhere(accepted, "a", any_order=False)
    assert report.findings == []


# --- the marker -------------------------------------------------------------------------------------------------------


@pytest.mark.kagzi_crash_everywhere
async def test_a_marked_test_crashes_everywhere(kagzi_env: TestEnv) -> None:
    calls = kagzi_env.mock("fetch", returns="mocked")
    assert await kagzi_env.run(child, "a") == "mocked"
    assert len(calls) == 1
    with kagzi_env.crashing_runs() as reports:
        await kagzi_env.run(child, "b")
    assert reports[0].kills > 2


@pytest.mark.kagzi_crash_everywhere
async def test_a_marked_test_of_a_run_that_fails(kagzi_env: TestEnv) -> None:
    with pytest.raises(RunError, match="ValueError: no kiwi"):
        await kagzi_env.run(fails, "kiwi")


def test_a_marked_test_that_runs_nothing_fails(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((Path(__file__).parents[3] / "conftest.py").read_text())
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.kagzi_crash_everywhere
        def test_nothing(kagzi_env): ...

        @pytest.mark.kagzi_crash_everywhere
        def test_without_environment(): ...
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*No workflow was run in this test*", "*needs the fixture kagzi_env*"])

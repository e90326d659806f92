"""A run that is adopted goes to workers of one build only, until it is adopted again or that build does not fit."""

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.keys.audit import Action, AuditEntry
from kagzi.core.records import RunKey
from kagzi.core.states import RunStatus as S
from kagzi.core.times import LAST_TIME
from kagzi.core.workflow_types.queues import TypeLimits

from .verbs import StoreHarness, complete_run, diverged, fail_run, refused

LIMITS = {
    "none": None,
    "of the type": TypeLimits(max_running=50),
    "by rate": TypeLimits(starts_per_second=1000.0),
    "per key": TypeLimits(max_running_per_key=50),
    "by rate per key": TypeLimits(starts_per_second_per_key=1000.0),
}


def entry(harness: StoreHarness, run: RunKey) -> AuditEntry:
    return AuditEntry(
        audit_id=harness.ids.run_id(harness.now),
        at=harness.now,
        key_id="",
        key_name="",
        action=Action.RUN_ADOPT,
        namespace=run.namespace,
        subject=run.run_id,
        details={},
    )


async def stuck(harness: StoreHarness, **options: object) -> RunKey:
    """PAUSED because the code of build-1 did not fit."""
    holding = await harness.running(**options)
    await harness.do(diverged(holding))
    return holding.run


async def claiming_builds(harness: StoreHarness, *builds: str) -> list[str]:
    """Which of these builds, asking one after the other, get a run."""
    return [build for build in builds if await harness.claim(build_id=build)]


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
async def test_only_that_build_takes_it(harness: StoreHarness, limits: TypeLimits | None) -> None:
    run = await stuck(harness, concurrency_key="alice")
    if limits is not None:
        await harness.store.put_type_limits("default", "hello", limits, harness.now)
    assert await harness.adopt(run, "build-2") == S.PENDING
    assert harness.effects.pending, "nobody is told that there is work"
    record = await harness.run(run)
    assert (record.pinned_build, record.problem) == ("build-2", None)
    assert await claiming_builds(harness, "", "build-1", "build-3", "build-2") == ["build-2"]


@pytest.mark.parametrize("limited", [False, True], ids=["no limits", "limits per key"])
async def test_others_are_not_held_up_by_it(harness: StoreHarness, limited: bool) -> None:
    run = await stuck(harness)
    other = await harness.start()
    if limited:
        await harness.store.put_type_limits("default", "hello", LIMITS["per key"] or TypeLimits(), harness.now)
    await harness.adopt(run, "build-2")
    wants = [harness.want(build_id=build, worker_id=f"of-{build}", limit=5) for build in ("build-1", "build-2")]
    claimed = {one.run: one.worker_id for one in await harness.claim(*wants)}
    assert claimed == {other: "of-build-1", run: "of-build-2"}


async def test_it_stays_with_that_build_when_it_sleeps_or_loses_its_worker(harness: StoreHarness) -> None:
    run = await stuck(harness)
    await harness.adopt(run, "build-2")
    holding = await harness.hold(run, build_id="build-2")
    await harness.store.release([holding], harness.now)
    assert await claiming_builds(harness, "build-1", "build-2") == ["build-2"]


async def test_it_is_free_again_when_that_build_does_not_fit_either(harness: StoreHarness) -> None:
    run = await stuck(harness)
    await harness.adopt(run, "build-2")
    await harness.do(diverged(await harness.hold(run, build_id="build-2"), build_id="build-2"))
    record = await harness.run(run)
    assert (record.status, record.pinned_build) == (S.PAUSED, None)
    assert not await harness.new_build("build-2")
    assert await harness.new_build("build-3")
    assert await claiming_builds(harness, "build-3") == ["build-3"]


async def test_a_new_build_does_not_wake_what_is_pinned_to_another(harness: StoreHarness) -> None:
    run = await stuck(harness)
    await harness.adopt(run, "build-2")
    await harness.pause(run)
    assert not await harness.new_build("build-3")
    assert (await harness.run(run)).status == S.PAUSED


async def test_every_worker_may_take_it_again(harness: StoreHarness) -> None:
    run = await stuck(harness)
    await harness.adopt(run, "build-2")
    assert await harness.adopt(run, "") == S.PENDING
    assert (await harness.run(run)).pinned_build is None
    assert await claiming_builds(harness, "build-1") == ["build-1"]


async def test_taking_the_pin_back_does_not_resume(harness: StoreHarness) -> None:
    run = await stuck(harness)
    assert await harness.adopt(run, "") == S.PAUSED
    assert (await harness.run(run)).problem is not None


async def test_a_run_that_waits_is_pinned_where_it_is(harness: StoreHarness) -> None:
    later = await harness.start(start_at=harness.now + 1_000_000)
    assert await harness.adopt(later, "build-2") == S.SLEEPING
    pending = await harness.start()
    assert await harness.adopt(pending, "build-2") == S.PENDING
    assert await claiming_builds(harness, "build-1", "build-2") == ["build-2"]


async def test_what_is_executed_or_has_ended_is_refused(harness: StoreHarness) -> None:
    holding = await harness.running()
    error = refused(await harness.adopt(holding.run, "build-2"), ErrorCode.PRECONDITION_FAILED)
    assert "kagzi pause" in error.message
    await harness.do(complete_run(holding))
    error = refused(await harness.adopt(holding.run, "build-2"), ErrorCode.PRECONDITION_FAILED)
    assert "kagzi fork" in error.message
    refused(await harness.adopt(holding.run, ""), ErrorCode.PRECONDITION_FAILED)
    assert (await harness.run(holding.run)).pinned_build is None


async def test_it_can_be_repeated_and_is_audited_once(harness: StoreHarness) -> None:
    run = await stuck(harness)
    await harness.adopt(run, "build-2", entry(harness, run))
    await harness.hold(run, build_id="build-2")
    assert await harness.adopt(run, "build-2", entry(harness, run)) == S.RUNNING
    refused(await harness.adopt(run, "build-3", entry(harness, run)), ErrorCode.PRECONDITION_FAILED)
    rows = await harness.store.list_audit("default", since=0, until=LAST_TIME, cursor=None, limit=10)
    assert [(row.action, row.subject) for row in rows.rows] == [("run.adopt", run.run_id)]


async def test_nobody_adopts_a_run_of_another_namespace(harness: StoreHarness) -> None:
    run = await stuck(harness)
    assert await harness.adopt(RunKey("elsewhere", run.run_id), "build-2") is None
    assert (await harness.run(run)).pinned_build is None


async def test_a_retry_keeps_the_build(harness: StoreHarness) -> None:
    run = await stuck(harness)
    await harness.adopt(run, "build-2")
    await harness.do(fail_run(await harness.hold(run, build_id="build-2")))
    assert await harness.retry(run) == S.PENDING
    assert (await harness.run(run)).pinned_build == "build-2"
    assert await claiming_builds(harness, "build-1", "build-2") == ["build-2"]

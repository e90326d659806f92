"""Rows that name a run of another namespace: no statement of the store follows the name.

Nothing that is sent makes such rows, since an import renames what it brings (engine/transfers). They are put there all
the same: each store must hold by itself.
"""

import msgspec
import pytest

from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import Parked, RunClosed
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from kagzi.core.transfers.images import LinkImage, RunImage, StepImage, write_data

from .verbs import StoreHarness, complete_run, continue_as, fail_run, park, payload, the

THEIRS = "theirs"
SECRET = payload("between us")


def waiting_for(child_run_id: str) -> list[StepImage | LinkImage]:
    step = StepImage(
        step_id="kid",
        name="kid",
        kind=StepKind.CHILD,
        status=StepStatus.RUNNING,
        begun_seq=1,
        created_at=1,
        started_at=1,
        child_run_id=child_run_id,
    )
    return [step, LinkImage(step_id="kid", child_run_id=child_run_id)]


async def brought(harness: StoreHarness, *parts: StepImage | LinkImage, **fields: object) -> RunKey:
    """A run of theirs, as it stands here, past the engine."""
    run = RunKey(THEIRS, harness.ids.run_id(harness.now, THEIRS))
    waiting = {"status": RunStatus.SLEEPING, "wait_reason": WaitReason.CHILD}
    known = {"run_id": run.run_id, "workflow_id": run.run_id, "request_id": run.run_id, "workflow_type": "theirs"}
    image = RunImage(**{"created_at": 1, "last_seq": 1, **known, **waiting, **fields})  # type: ignore[arg-type]
    assert await harness.store.begin_import(run.run_id, "token", harness.now, 0) == "open"
    assert await harness.store.import_parts(run, "token", parts, harness.now) == len(parts)
    status, _ = await harness.store.finish_import(run, "token", image, harness.now)
    the(RunStatus, status)
    return run


async def ours_as_it_is(harness: StoreHarness, run: RunKey) -> RunImage:
    image = await harness.store.export_run(run)
    assert image is not None
    return image


async def still_waits(harness: StoreHarness, run: RunKey) -> None:
    assert (await harness.run(run)).status is RunStatus.SLEEPING
    step = (await harness.steps(run))["kid"]
    assert (step.status, step.output, step.error) == (StepStatus.RUNNING, None, None)


async def test_the_result_of_a_child_that_has_ended_is_not_disclosed(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(complete_run(holding, "between us"))
    before = await ours_as_it_is(harness, holding.run)
    await still_waits(harness, await brought(harness, *waiting_for(holding.run.run_id)))
    assert await ours_as_it_is(harness, holding.run) == before


@pytest.mark.parametrize("how", ["completed", "failed", "terminated", "cancelled", "continued", "by deadline"])
async def test_nor_that_of_a_child_still_running(harness: StoreHarness, how: str) -> None:
    holding = await harness.running(deadline_at=harness.now + 50_000_000)
    before = await ours_as_it_is(harness, holding.run)
    theirs = await brought(harness, *waiting_for(holding.run.run_id))
    assert await ours_as_it_is(harness, holding.run) == before, "it is watched by a stranger"
    closed = await end(harness, holding, how)
    assert not getattr(closed, "stirred", ())
    await still_waits(harness, theirs)


async def end(harness: StoreHarness, holding: RunLease, how: str) -> object:
    match how:
        case "completed":
            return the(RunClosed, await harness.do(complete_run(holding, "between us")))
        case "failed":
            return the(RunClosed, await harness.do(fail_run(holding)))
        case "terminated":
            return await harness.terminate(holding.run)
        case "cancelled":
            await harness.cancel(holding.run)
            harness.clock.advance(s=100_000)
            return await harness.fire()
        case "continued":
            new = RunKey(holding.run.namespace, harness.ids.run_id(harness.now))
            the(RunClosed, await harness.do(continue_as(holding, new.run_id)))
            return await harness.terminate(new)
        case _:
            harness.clock.advance(s=100)
            return await harness.fire()


async def test_a_parent_of_ours_is_not_notified_of_an_end_of_theirs(harness: StoreHarness) -> None:
    """The forged run says that it is the child, and has ended."""
    holding = await harness.running()
    child = await harness.child(holding)
    the(Parked, await harness.do(park(holding)))
    before = await harness.picture(holding.run)
    ended = {"status": RunStatus.COMPLETED, "wait_reason": None, "finished_at": 1, "last_seq": 0, "watched": True}
    parent = {"parent_run_id": holding.run.run_id, "parent_step_id": "child", "on_close": "cancel"}
    await brought(harness, **ended, **parent, output=write_data(SECRET))
    assert await harness.picture(holding.run) == before
    assert (await harness.run(child)).status is RunStatus.PENDING


async def test_children_of_theirs_do_not_end_with_a_parent_of_ours(harness: StoreHarness) -> None:
    holding = await harness.running()
    child = await harness.child(holding)
    theirs = await brought(
        harness, *waiting_for(child.run_id), parent_run_id=holding.run.run_id, parent_step_id="x", on_close="cancel"
    )
    await harness.terminate(holding.run)
    assert [end.run for end in (await harness.cascade()).ended] == [child]
    await still_waits(harness, theirs)


async def test_nobody_begins_after_a_run_of_another_namespace(harness: StoreHarness) -> None:
    holding = await harness.running()
    theirs = await brought(harness, last_seq=0, blocked_by=holding.run.run_id)
    record = await harness.run(theirs)
    assert (record.status, record.blocked_by) == (RunStatus.PENDING, None), "as if it had ended"
    the(RunClosed, await harness.do(complete_run(holding)))


async def test_a_retry_finds_children_in_its_namespace_only(harness: StoreHarness) -> None:
    """A step that waited for a stranger waits for nobody: it starts a child of its own."""
    holding = await harness.running()
    before = await ours_as_it_is(harness, holding.run)
    failed = {"status": RunStatus.FAILED, "wait_reason": None, "finished_at": 1, "last_seq": 2}
    error = msgspec.structs.replace(fail_run(holding).error, subject="", subject_id="")
    theirs = await brought(harness, waiting_for(holding.run.run_id)[0], **failed, error=error)
    await harness.retry(theirs)
    assert (await harness.steps(theirs))["kid"].child_run_id is None
    assert await ours_as_it_is(harness, holding.run) == before


async def test_a_fork_of_theirs_does_not_watch_ours(harness: StoreHarness) -> None:
    holding = await harness.running()
    before = await ours_as_it_is(harness, holding.run)
    last = StepImage(
        step_id="last",
        name="last",
        kind=StepKind.FUNCTION,
        status=StepStatus.RUNNING,
        begun_seq=2,
        created_at=1,
        started_at=1,
    )
    theirs = await brought(harness, waiting_for(holding.run.run_id)[0], last, last_seq=2)
    await harness.fork(theirs, "last")
    assert await ours_as_it_is(harness, holding.run) == before
    assert not (await harness.store.delete_runs(THEIRS, [holding.run.run_id], until=2**62))


async def test_known_runs_are_those_of_the_namespace(harness: StoreHarness) -> None:
    ours, theirs = await harness.start(), await harness.start(namespace=THEIRS)
    unknown = harness.ids.run_id(harness.now)
    run_ids = [ours.run_id, theirs.run_id, unknown]
    assert list(await harness.store.known_runs(THEIRS, run_ids)) == [theirs.run_id]
    assert list(await harness.store.known_runs("default", run_ids)) == [ours.run_id]

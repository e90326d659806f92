"""Rows that name a run of another namespace: no statement of the store follows the name.

Nothing that is sent makes such rows, since an import renames what it brings (engine/transfers). They are put there all the same: each
store must hold by itself.
"""

import msgspec
import pytest

from kagzi.core.records import Held, RunKey
from kagzi.core.run.outcomes import Parked, RunClosed
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from kagzi.core.transfers.images import LinkImage, RunImage, StepImage, write_data
from kagzi.store.protocol.transfers import Imported

from .verbs import Cellar, complete_run, fail_run, go_on_as, park, payload, the

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


async def brought(cellar: Cellar, *parts: StepImage | LinkImage, **fields: object) -> RunKey:
    """A run of theirs, as it stands here, past the engine."""
    run = RunKey(THEIRS, cellar.ids.run_id(cellar.now, THEIRS))
    waiting = {"status": RunStatus.SLEEPING, "wait_reason": WaitReason.CHILD}
    known = {"run_id": run.run_id, "workflow_id": run.run_id, "request_id": run.run_id, "workflow_type": "theirs"}
    image = RunImage(**{"created_at": 1, "last_seq": 1, **known, **waiting, **fields})  # type: ignore[arg-type]
    assert await cellar.store.begin_import(run.run_id, "token", cellar.now, 0) == "open"
    assert await cellar.store.stage_import(run, "token", parts, cellar.now) == len(parts)
    the(Imported, await cellar.store.finish_import(run, "token", image, cellar.now))
    return run


async def ours_as_it_is(cellar: Cellar, run: RunKey) -> RunImage:
    image = await cellar.store.export_run(run)
    assert image is not None
    return image


async def still_waits(cellar: Cellar, run: RunKey) -> None:
    assert (await cellar.run(run)).status is RunStatus.SLEEPING
    step = (await cellar.steps(run))["kid"]
    assert (step.status, step.output, step.error) == (StepStatus.RUNNING, None, None)


async def test_the_result_of_a_child_that_has_ended_is_not_given(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(complete_run(holding, "between us"))
    before = await ours_as_it_is(cellar, holding.run)
    await still_waits(cellar, await brought(cellar, *waiting_for(holding.run.run_id)))
    assert await ours_as_it_is(cellar, holding.run) == before


@pytest.mark.parametrize("how", ["completed", "failed", "terminated", "cancelled", "continued", "by deadline"])
async def test_nor_that_of_one_that_ends_later(cellar: Cellar, how: str) -> None:
    holding = await cellar.running(deadline_at=cellar.now + 50_000_000)
    before = await ours_as_it_is(cellar, holding.run)
    theirs = await brought(cellar, *waiting_for(holding.run.run_id))
    assert await ours_as_it_is(cellar, holding.run) == before, "it is watched by a stranger"
    closed = await end(cellar, holding, how)
    assert not getattr(closed, "stirred", ())
    await still_waits(cellar, theirs)


async def end(cellar: Cellar, holding: Held, how: str) -> object:
    match how:
        case "completed":
            return the(RunClosed, await cellar.do(complete_run(holding, "between us")))
        case "failed":
            return the(RunClosed, await cellar.do(fail_run(holding)))
        case "terminated":
            return await cellar.terminate(holding.run)
        case "cancelled":
            await cellar.cancel(holding.run)
            cellar.clock.advance(s=100_000)
            return await cellar.fire()
        case "continued":
            new = RunKey(holding.run.namespace, cellar.ids.run_id(cellar.now))
            the(RunClosed, await cellar.do(go_on_as(holding, new.run_id)))
            return await cellar.terminate(new)
        case _:
            cellar.clock.advance(s=100)
            return await cellar.fire()


async def test_a_parent_of_ours_is_not_told_of_an_end_of_theirs(cellar: Cellar) -> None:
    """The forged run says that it is the child, and has ended."""
    holding = await cellar.running()
    child = await cellar.child(holding)
    the(Parked, await cellar.do(park(holding)))
    before = await cellar.picture(holding.run)
    ended = {"status": RunStatus.COMPLETED, "wait_reason": None, "finished_at": 1, "last_seq": 0, "watched": True}
    parent = {"parent_run_id": holding.run.run_id, "parent_step_id": "child", "on_close": "cancel"}
    await brought(cellar, **ended, **parent, output=write_data(SECRET))
    assert await cellar.picture(holding.run) == before
    assert (await cellar.run(child)).status is RunStatus.PENDING


async def test_children_of_theirs_do_not_end_with_a_parent_of_ours(cellar: Cellar) -> None:
    holding = await cellar.running()
    child = await cellar.child(holding)
    theirs = await brought(
        cellar, *waiting_for(child.run_id), parent_run_id=holding.run.run_id, parent_step_id="x", on_close="cancel"
    )
    await cellar.terminate(holding.run)
    assert [each.run for each in await cellar.cascade()] == [child]
    await still_waits(cellar, theirs)


async def test_nobody_begins_after_a_run_of_another_namespace(cellar: Cellar) -> None:
    holding = await cellar.running()
    theirs = await brought(cellar, last_seq=0, blocked_by=holding.run.run_id)
    record = await cellar.run(theirs)
    assert (record.status, record.blocked_by) == (RunStatus.PENDING, None), "as if it had ended"
    the(RunClosed, await cellar.do(complete_run(holding)))


async def test_a_retry_looks_for_children_in_its_namespace(cellar: Cellar) -> None:
    """A step that waited for a stranger waits for nobody: it starts a child of its own."""
    holding = await cellar.running()
    before = await ours_as_it_is(cellar, holding.run)
    failed = {"status": RunStatus.FAILED, "wait_reason": None, "finished_at": 1, "last_seq": 2}
    error = msgspec.structs.replace(fail_run(holding).error, subject="", subject_id="")
    theirs = await brought(cellar, waiting_for(holding.run.run_id)[0], **failed, error=error)
    await cellar.retry(theirs)
    assert (await cellar.steps(theirs))["kid"].child_run_id is None
    assert await ours_as_it_is(cellar, holding.run) == before


async def test_a_fork_of_theirs_does_not_watch_ours(cellar: Cellar) -> None:
    holding = await cellar.running()
    before = await ours_as_it_is(cellar, holding.run)
    last = StepImage(
        step_id="last",
        name="last",
        kind=StepKind.FUNCTION,
        status=StepStatus.RUNNING,
        begun_seq=2,
        created_at=1,
        started_at=1,
    )
    theirs = await brought(cellar, waiting_for(holding.run.run_id)[0], last, last_seq=2)
    await cellar.fork(theirs, "last")
    assert await ours_as_it_is(cellar, holding.run) == before
    assert not (await cellar.store.delete_runs(THEIRS, [holding.run.run_id], until=2**62))


async def test_known_runs_are_those_of_the_namespace(cellar: Cellar) -> None:
    ours, theirs = await cellar.start(), await cellar.start(namespace=THEIRS)
    unknown = cellar.ids.run_id(cellar.now)
    asked = [ours.run_id, theirs.run_id, unknown]
    assert list(await cellar.store.known_runs(THEIRS, asked)) == [theirs.run_id]
    assert list(await cellar.store.known_runs("default", asked)) == [ours.run_id]

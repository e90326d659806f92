"""What a workflow shows of itself (`ctx.set_state`): the last value is kept beside the history, not in it."""

from kagzi.core.error_details import ErrorCode
from kagzi.core.limits import STATE_STORED_BYTES
from kagzi.core.records import Payload, RunKey
from kagzi.core.run.outcomes import LeaseLost, Recorded, Refused
from kagzi.core.run.refusals import state_too_large
from kagzi.core.states import RunStatus

from .test_transfers import brought, exported
from .verbs import (
    StoreHarness,
    begin,
    complete_run,
    continue_as,
    fail,
    fail_run,
    leased,
    park,
    payload,
    show,
    sleep,
    stale,
    the,
)


async def test_the_last_state_wins_and_is_in_no_history(harness: StoreHarness) -> None:
    holding = await harness.running()
    record = await harness.run(holding.run)
    assert (record.state, record.state_at) == (None, None)
    the(Recorded, await harness.do(show(holding, '{"n": 1}', {"encoding": "secret"})))
    record = await harness.run(holding.run)
    assert (record.state, record.state_at) == (Payload(b'{"n": 1}', {"encoding": "secret"}), harness.now)
    harness.clock.advance(s=1)
    await harness.write(show(holding, "2"), show(holding, "3"))
    record = await harness.run(holding.run)
    assert (record.state, record.state_at, record.last_seq) == (payload("3"), harness.now, 0)
    assert await harness.steps(holding.run) == {}
    (listed,) = await harness.runs()
    assert (listed.state, listed.state_at) == (None, None)
    again = await harness.take_over(holding)
    claimed = await harness.store.history(again.run, again.lease, 0)
    assert claimed is not None
    assert claimed.steps == ()


async def test_a_claim_brings_no_state(harness: StoreHarness) -> None:
    holding = await harness.running(input=payload('"in"'))
    await harness.write(show(holding, "1"), sleep(holding, "nap", s=1), park(holding, "nap"))
    assert (await harness.run(holding.run)).state == payload("1")
    harness.clock.advance(s=1)
    await harness.fire()
    claimed = await harness.claim_one()
    assert (claimed.input, claimed.context) == (payload('"in"'), None)
    assert [step.step_id for step in claimed.history.steps] == ["nap"]


async def test_it_stays_when_the_run_ends_and_is_retried(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    await harness.write(show(holding, '"half"'), begin(holding, "b"), fail(holding, "b"), fail_run(holding))
    record = await harness.run(holding.run)
    assert (record.status, record.state) == (RunStatus.FAILED, payload('"half"'))
    await harness.retry(holding.run)
    again = leased(await harness.claim_one())
    assert (await harness.run(holding.run)).state == payload('"half"')
    await harness.write(show(again, '"all"'), complete_run(again))
    record = await harness.run(holding.run)
    assert (record.status, record.state) == (RunStatus.COMPLETED, payload('"all"'))


async def test_a_fork_has_none_and_a_successor_keeps_it_until_it_sets_its_own(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id="entity")
    await harness.done(holding, "a")
    await harness.do(show(holding, '"first"'))
    set_at = harness.now
    await harness.fork(holding.run, "a", workflow_id="fork")
    fork = await harness.store.get_run("default", workflow_id="fork")
    assert fork is not None
    assert fork.state is None
    harness.clock.advance(s=1)
    new = RunKey("default", harness.ids.run_id(harness.now))
    await harness.do(continue_as(holding, new.run_id))
    record = await harness.run(new)
    assert (record.state, record.state_at) == (payload('"first"'), set_at)
    successor = await harness.hold(new)
    await harness.do(show(successor, '"second"'))
    assert (await harness.run(new)).state == payload('"second"')
    assert (await harness.run(holding.run)).state == payload('"first"')


async def test_only_the_holder_shows_it_and_it_has_a_size(harness: StoreHarness) -> None:
    holding = await harness.running()
    assert await harness.do(show(stale(holding), "1")) == LeaseLost()
    refused = the(Refused, await harness.do(show(holding, "1" * (STATE_STORED_BYTES + 1))))
    assert refused == state_too_large(STATE_STORED_BYTES + 1)
    assert refused.error.code is ErrorCode.INVALID_ARGUMENT
    the(Recorded, await harness.do(show(holding, "1" * STATE_STORED_BYTES)))
    await harness.do(complete_run(holding))
    assert await harness.do(show(holding, "late")) == LeaseLost()


async def test_whoever_watches_is_told_when_it_was_set(harness: StoreHarness) -> None:
    holding = await harness.running()
    (before,) = await harness.store.markers_of([holding.run])
    assert before is not None
    assert before.state_at is None
    await harness.do(show(holding, "1"))
    (after,) = await harness.store.markers_of([holding.run])
    page = await harness.store.events_of(holding.run, 0, 10)
    assert after is not None
    assert page is not None
    assert (after.state_at, page.mark.state_at, page.events) == (harness.now, harness.now, ())


async def test_it_travels_with_an_export(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(show(holding, '{"n":1}', {"encoding": "secret"}), complete_run(holding))
    before, data = await harness.run(holding.run), await exported(harness, holding.run)
    deleted = await harness.store.delete_runs("default", [holding.run.run_id], until=harness.now + 1)
    assert deleted == [holding.run.run_id]
    harness.clock.advance(s=9)
    await brought(harness, data)
    after = await harness.run(holding.run)
    assert (after.state, after.state_at) == (before.state, before.state_at)

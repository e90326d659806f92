"""What a run says of itself: status text, progress and the heartbeat of a long step. Last value wins."""

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.limits import STATUS_TEXT_BYTES
from kagzi.core.run.outcomes import Known, LeaseLost, Recorded, Refused
from kagzi.core.run.refusals import status_too_long
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.store.protocol import LeaseTerms

from .verbs import (
    LEASE_US,
    StoreHarness,
    beat,
    begin,
    by_id,
    complete,
    complete_run,
    hand_back,
    park,
    patch,
    payload,
    refused,
    say_status,
    sleep,
    stale,
    the,
)


async def test_the_last_status_wins(harness: StoreHarness) -> None:
    holding = await harness.running()
    assert (await harness.run(holding.run)).status_text == ""
    the(Recorded, await harness.do(say_status(holding, "loading", 0.25)))
    record = await harness.run(holding.run)
    assert (record.status_text, record.progress) == ("loading", 0.25)
    await harness.write(say_status(holding, "höher", 0.5), say_status(holding, "almost", 0.75))
    record = await harness.run(holding.run)
    assert (record.status_text, record.progress) == ("almost", 0.75)
    assert await harness.steps(holding.run) == {}
    (listed,) = await harness.runs()
    assert (listed.status_text, listed.progress) == ("almost", 0.75)


async def test_a_status_stays_when_the_run_sleeps_and_closes(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(say_status(holding, "resting"), sleep(holding, "nap", s=1), park(holding, "nap"))
    assert (await harness.run(holding.run)).status_text == "resting"
    harness.clock.advance(s=1)
    await harness.fire()
    new = await harness.hold(holding.run)
    await harness.write(say_status(new, "done", 1.0), complete_run(new))
    record = await harness.run(holding.run)
    assert (record.status, record.status_text, record.progress) == (RunStatus.COMPLETED, "done", 1.0)


async def test_only_the_holder_says_a_status(harness: StoreHarness) -> None:
    holding = await harness.running()
    assert await harness.do(say_status(stale(holding), "mine")) == LeaseLost()
    too_long = await harness.do(say_status(holding, "x" * (STATUS_TEXT_BYTES + 1)))
    assert too_long == status_too_long(STATUS_TEXT_BYTES + 1)
    the(Recorded, await harness.do(say_status(holding, "x" * STATUS_TEXT_BYTES)))


async def test_a_heartbeat_is_kept_with_its_step(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "long"))
    the(Recorded, await harness.do(beat(holding, "long", "10")))
    the(Recorded, await harness.do(beat(holding, "long", "20")))
    step = (await harness.steps(holding.run))["long"]
    assert (step.details, step.status, step.seq) == (payload("20"), StepStatus.RUNNING, 0)
    await harness.do(hand_back(holding))
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["long"].details == payload("20")


async def test_a_heartbeat_renews_the_lease_and_is_progress(harness: StoreHarness) -> None:
    old = await harness.running()
    new = await harness.take_over(old)
    assert (await harness.run(new.run)).lost_leases == 1
    await harness.do(begin(new, "long"))
    for n in range(5):
        harness.clock.advance(us=LEASE_US - 1)
        terms = LeaseTerms(until=harness.now + LEASE_US, renew_before=harness.now + LEASE_US)
        await harness.write(beat(new, "long", f"{n}"), terms=terms)
        assert (await harness.fire()).lost == ()
    assert (await harness.run(new.run)).lost_leases == 0


async def test_a_heartbeat_of_a_stranger_or_of_nothing_is_refused(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "long"))
    assert await harness.do(beat(stale(holding), "long", "1")) == LeaseLost()
    refused(await harness.do(beat(holding, "never", "1")), ErrorCode.PRECONDITION_FAILED)
    refused(await harness.do(beat(holding, "long", "1", attempt=2)), ErrorCode.PRECONDITION_FAILED)
    await harness.do(complete(holding, "long"))
    refused(await harness.do(beat(holding, "long", "2")), ErrorCode.PRECONDITION_FAILED)
    assert (await harness.steps(holding.run))["long"].output == payload("done")


async def test_a_patch_is_recorded_once(harness: StoreHarness) -> None:
    holding = await harness.running()
    first = the(Recorded, await harness.do(patch(holding, "new-tax")))
    step = (await harness.steps(holding.run))["new-tax"]
    assert (step.kind, step.status, step.seq) == (StepKind.PATCH, StepStatus.COMPLETED, first.seq)
    again = await harness.do(patch(holding, "new-tax"))
    assert (again.step.seq if isinstance(again, Known) else the(Recorded, again).seq) == first.seq
    new = await harness.take_over(holding)
    await harness.do(patch(new, "new-tax"))
    assert (await harness.steps(holding.run))["new-tax"] == step
    refused(await harness.do(begin(new, "new-tax")), ErrorCode.PRECONDITION_FAILED)


@pytest.mark.parametrize("kind", ["patch", "status"])
async def test_small_things_ride_with_the_next_operation(harness: StoreHarness, kind: str) -> None:
    holding = await harness.running()
    small = patch(holding, "p") if kind == "patch" else say_status(holding, "now")
    outcomes = await harness.write(small, begin(holding, "a"), complete(holding, "a"), complete_run(holding))
    assert not any(isinstance(outcome, Refused) for outcome in outcomes), outcomes
    assert (await harness.run(holding.run)).status == RunStatus.COMPLETED

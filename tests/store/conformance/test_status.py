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
    Cellar,
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


async def test_the_last_status_wins(cellar: Cellar) -> None:
    holding = await cellar.running()
    assert (await cellar.run(holding.run)).status_text == ""
    the(Recorded, await cellar.do(say_status(holding, "loading", 0.25)))
    record = await cellar.run(holding.run)
    assert (record.status_text, record.progress) == ("loading", 0.25)
    await cellar.write(say_status(holding, "höher", 0.5), say_status(holding, "almost", 0.75))
    record = await cellar.run(holding.run)
    assert (record.status_text, record.progress) == ("almost", 0.75)
    assert await cellar.steps(holding.run) == {}
    (listed,) = await cellar.runs()
    assert (listed.status_text, listed.progress) == ("almost", 0.75)


async def test_a_status_stays_when_the_run_sleeps_and_ends(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(say_status(holding, "resting"), sleep(holding, "nap", s=1), park(holding, "nap"))
    assert (await cellar.run(holding.run)).status_text == "resting"
    cellar.clock.advance(s=1)
    await cellar.fire()
    new = await cellar.hold(holding.run)
    await cellar.write(say_status(new, "done", 1.0), complete_run(new))
    record = await cellar.run(holding.run)
    assert (record.status, record.status_text, record.progress) == (RunStatus.COMPLETED, "done", 1.0)


async def test_only_the_holder_says_a_status(cellar: Cellar) -> None:
    holding = await cellar.running()
    assert await cellar.do(say_status(stale(holding), "mine")) == LeaseLost()
    too_long = await cellar.do(say_status(holding, "x" * (STATUS_TEXT_BYTES + 1)))
    assert too_long == status_too_long(STATUS_TEXT_BYTES + 1)
    the(Recorded, await cellar.do(say_status(holding, "x" * STATUS_TEXT_BYTES)))


async def test_a_heartbeat_is_kept_with_its_step(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(begin(holding, "long"))
    the(Recorded, await cellar.do(beat(holding, "long", "10")))
    the(Recorded, await cellar.do(beat(holding, "long", "20")))
    step = (await cellar.steps(holding.run))["long"]
    assert (step.details, step.status, step.seq) == (payload("20"), StepStatus.RUNNING, 0)
    await cellar.do(hand_back(holding))
    claimed = await cellar.claim_one()
    assert by_id(claimed.history.steps)["long"].details == payload("20")


async def test_a_heartbeat_renews_the_lease_and_is_progress(cellar: Cellar) -> None:
    old = await cellar.running()
    new = await cellar.take_over(old)
    assert (await cellar.run(new.run)).lost_leases == 1
    await cellar.do(begin(new, "long"))
    for n in range(5):
        cellar.clock.advance(us=LEASE_US - 1)
        terms = LeaseTerms(until=cellar.now + LEASE_US, renew_before=cellar.now + LEASE_US)
        await cellar.write(beat(new, "long", f"{n}"), terms=terms)
        assert (await cellar.fire()).lost == ()
    assert (await cellar.run(new.run)).lost_leases == 0


async def test_a_heartbeat_of_a_stranger_or_of_nothing_is_refused(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(begin(holding, "long"))
    assert await cellar.do(beat(stale(holding), "long", "1")) == LeaseLost()
    refused(await cellar.do(beat(holding, "never", "1")), ErrorCode.PRECONDITION_FAILED)
    refused(await cellar.do(beat(holding, "long", "1", attempt=2)), ErrorCode.PRECONDITION_FAILED)
    await cellar.do(complete(holding, "long"))
    refused(await cellar.do(beat(holding, "long", "2")), ErrorCode.PRECONDITION_FAILED)
    assert (await cellar.steps(holding.run))["long"].output == payload("done")


async def test_a_patch_is_recorded_once(cellar: Cellar) -> None:
    holding = await cellar.running()
    first = the(Recorded, await cellar.do(patch(holding, "new-tax")))
    step = (await cellar.steps(holding.run))["new-tax"]
    assert (step.kind, step.status, step.seq) == (StepKind.PATCH, StepStatus.COMPLETED, first.seq)
    again = await cellar.do(patch(holding, "new-tax"))
    assert (again.step.seq if isinstance(again, Known) else the(Recorded, again).seq) == first.seq
    new = await cellar.take_over(holding)
    await cellar.do(patch(new, "new-tax"))
    assert (await cellar.steps(holding.run))["new-tax"] == step
    refused(await cellar.do(begin(new, "new-tax")), ErrorCode.PRECONDITION_FAILED)


@pytest.mark.parametrize("kind", ["patch", "status"])
async def test_small_things_ride_with_the_next_operation(cellar: Cellar, kind: str) -> None:
    holding = await cellar.running()
    small = patch(holding, "p") if kind == "patch" else say_status(holding, "now")
    outcomes = await cellar.write(small, begin(holding, "a"), complete(holding, "a"), complete_run(holding))
    assert not any(isinstance(outcome, Refused) for outcome in outcomes), outcomes
    assert (await cellar.run(holding.run)).status == RunStatus.COMPLETED

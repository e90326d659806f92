"""What holds on the fast path and on the careful one alike: cases in which one of them used to say something else."""

from collections.abc import Callable

import msgspec
import pytest

from kagzi.core.records import Payload, RunKey, RunLease
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Begun, ChildStarted, Recorded, RunClosed, StepFailed
from kagzi.core.run.refusals import foreign_request, never_begun, not_current, unstorable
from kagzi.core.states import RunStatus, StepCode
from kagzi.store.protocol import Store

from .verbs import BOOM, StoreHarness, begin, complete, complete_run, fail, leased, sleep, stale, the

SURROGATE = "half \ud800 a message"


UNSTORABLE: dict[str, Callable[[RunLease], Command]] = {
    "name": lambda holding: begin(holding, "a", name=SURROGATE),
    "output.metadata": lambda holding: complete(holding, "a", Payload(b"1", {"note": SURROGATE})),
    "parent_step_id": lambda holding: sleep(holding, "nap", s=1, parent_step_id=SURROGATE),
    "error": lambda holding: fail(holding, "a", msgspec.structs.replace(BOOM, message=SURROGATE)),
}


@pytest.mark.parametrize("field", UNSTORABLE)
async def test_text_that_cannot_be_stored_is_refused_whoever_sends_it(harness: StoreHarness, field: str) -> None:
    holding = await harness.running()
    nobody = RunLease(RunKey("default", harness.ids.run_id(0)), holding.lease)
    for sender in (holding, stale(holding), nobody):
        command = UNSTORABLE[field](sender)
        assert await harness.do(command) == unstorable(field)
        assert (await harness.write(command, begin(stale(holding), "b")))[0] == unstorable(field)


async def test_a_nul_in_metadata_is_kept(harness: StoreHarness) -> None:
    """They are JSON, where it is escaped."""
    holding = await harness.running()
    output = Payload(b"1", {"note": "a\0b"})
    outcomes = await harness.write(begin(holding, "a", input=output), complete(holding, "a", output))
    assert [type(outcome) for outcome in outcomes] == [Begun, Recorded]
    assert (await harness.steps(holding.run))["a"].output == output


async def test_a_result_of_a_step_that_begins_after_it_is_none(harness: StoreHarness) -> None:
    holding = await harness.running()
    completed, begun = await harness.write(complete(holding, "a"), begin(holding, "a"))
    assert completed == never_begun("a")
    assert the(Begun, begun).seq == 1


async def test_no_attempt_is_below_one(harness: StoreHarness) -> None:
    holding = await harness.running()
    _, completed = await harness.write(begin(holding, "a"), complete(holding, "a", attempt=-1))
    assert completed == not_current("a", status=StepCode.RUNNING, recorded=1, attempt=-1)


async def test_a_step_sent_again_with_its_result_burns_no_numbers(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "a"))
    begun, completed = await harness.write(begin(holding, "a"), complete(holding, "a"))
    assert (the(Begun, begun).seq, the(Recorded, completed).seq) == (1, 2)
    begun, completed = await harness.write(begin(holding, "b"), complete(holding, "b"))
    assert (the(Begun, begun).seq, the(Recorded, completed).seq) == (3, 4)


@pytest.mark.parametrize("progress", [True, False])
async def test_leases_lost_before_a_result_do_not_count_even_if_it_closes_the_run(
    harness: StoreHarness, store: Store, progress: bool
) -> None:
    holding = await harness.running()
    await store.lost_before_ack([holding], harness.now, [harness.now + 1])
    again = leased(await harness.claim_one())
    commands = [begin(again, "a"), complete(again, "a")] if progress else []
    outcomes = await harness.write(*commands, complete_run(again))
    assert the(RunClosed, outcomes[-1]).status is RunStatus.COMPLETED
    assert (await harness.run(holding.run)).lost_leases == (0 if progress else 1)


async def test_one_request_starts_one_child_within_one_batch_too(harness: StoreHarness) -> None:
    parent = await harness.running()
    first = harness.child_command(parent, "first", request_id="the same")
    second = harness.child_command(parent, "second", request_id="the same")
    started, refused = await harness.write(first, second)
    assert the(ChildStarted, started).created
    error = foreign_request("the same", first.start.run.run_id).error
    assert the(StepFailed, refused).error.message == error.message

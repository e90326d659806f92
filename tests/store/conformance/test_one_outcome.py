"""What the stores once decided differently: one code, one subject and one wording, whichever store is asked."""

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.errors import InvalidArgument
from kagzi.core.limits import SIGNALS_BUFFERED, STATUS_TEXT_BYTES
from kagzi.core.providers import Clock, Ids
from kagzi.core.records import Lease, RunKey, RunLease
from kagzi.core.run import refusals
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Begun, ChildStarted, Existing, Known, Recorded, Refused, Started, StepFailed
from kagzi.core.states import KindCode, RunStatus, StepKind, StepStatus
from kagzi.engine.checks.operations import Operations
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .verbs import (
    StoreHarness,
    acknowledge_cancel,
    beat,
    begin,
    complete,
    complete_run,
    continue_as,
    fail,
    fail_run,
    finish,
    hand_back,
    park,
    patch,
    race,
    refused,
    say_status,
    sleep,
    the,
    wait_signal,
)

RESERVED = ("$output", "$input", "$context", "$anything")


def beginnings(harness: StoreHarness, holding: RunLease, step_id: str) -> list[Command]:
    """Every command that may make a step."""
    return [
        begin(holding, step_id),
        begin(holding, step_id, once=True),
        sleep(holding, step_id, s=1),
        wait_signal(holding, step_id=step_id),
        race(holding, step_id, "a"),
        patch(holding, step_id),
        harness.child_command(holding, step_id),
    ]


@pytest.mark.parametrize("step_id", RESERVED)
async def test_a_reserved_name_is_no_step_of_any_kind(harness: StoreHarness, step_id: str) -> None:
    holding = await harness.running()
    for command in beginnings(harness, holding, step_id):
        assert await harness.do(command) == refusals.reserved_step(step_id)
    both = await harness.write(begin(holding, step_id), complete(holding, step_id))
    assert both == [refusals.reserved_step(step_id), refusals.never_begun(step_id)]
    assert await harness.steps(holding.run) == {}
    the(Begun, await harness.do(begin(holding, f"task[1]/{step_id}")))  # only the whole id is the engine's
    await harness.do(complete_run(holding, "result"))
    assert (await harness.run(holding.run)).output is not None


@pytest.mark.parametrize("step_id", RESERVED)
def test_a_reserved_name_does_not_even_reach_the_store(step_id: str) -> None:
    clock: Clock = FakeClock()
    ids: Ids = CountingIds()
    operations = Operations(1_000, clock=clock, ids=ids)
    harness = StoreHarness(None, FakeClock(), CountingIds())  # type: ignore[arg-type]
    holding = RunLease(harness.start_command().run, Lease(1, 7))
    for command in beginnings(harness, holding, step_id):
        with pytest.raises(InvalidArgument) as raised:
            operations.check(command)
        expected = refusals.reserved_step(step_id).error
        assert (raised.value.message, raised.value.field) == (expected.message, expected.subject_id)


@pytest.mark.parametrize("attempt", [0, 1])
async def test_a_step_that_may_run_once_and_was_lost_has_failed(harness: StoreHarness, attempt: int) -> None:
    old = await harness.running()
    the(Begun, await harness.do(begin(old, "pay", once=True)))
    new = await harness.take_over(old)
    step = the(Known, await harness.do(begin(new, "pay", attempt, once=True))).step
    assert (step.status, step.attempt, step.error) == (StepStatus.FAILED, 1, refusals.lost_once("pay"))
    assert step.error is not None
    assert (step.error.code, step.error.kind) == (ErrorCode.LEASE_LOST, ErrorKind.LOST)
    assert (step.error.subject, step.error.subject_id, step.error.non_retryable) == ("step", "pay", True)
    assert await harness.do(begin(new, "pay", attempt, once=True)) == Known(step)
    assert await harness.do(complete(new, "pay")) == refusals.not_current("pay", status=4, recorded=1, attempt=1)
    assert (await harness.steps(old.run))["pay"].error == step.error


async def test_a_step_that_may_run_once_begins_again_under_its_own_lease(harness: StoreHarness) -> None:
    holding = await harness.running()
    first = the(Begun, await harness.do(begin(holding, "pay", once=True)))
    assert await harness.do(begin(holding, "pay", once=True)) == first
    the(Recorded, await harness.do(complete(holding, "pay")))


async def test_a_step_that_may_run_once_is_nobodys_in_a_fork(harness: StoreHarness) -> None:
    """It began in the run that was forked, not in this one."""
    holding = await harness.running()
    await harness.write(begin(holding, "pay", once=True), begin(holding, "other"))
    forked = the(Started, await harness.fork(holding.run, "other"))
    (run,) = [record.run for record in await harness.runs() if record.run.run_id == forked.run_id]
    await harness.do(hand_back(holding))
    await harness.pause(holding.run)
    new = await harness.hold(run)
    assert the(Begun, await harness.do(begin(new, "pay", once=True))).attempt == 1


async def test_a_status_that_is_too_long_is_a_wrong_argument(harness: StoreHarness) -> None:
    holding = await harness.running()
    size = STATUS_TEXT_BYTES + 1
    outcome = await harness.do(say_status(holding, "x" * size))
    assert outcome == refusals.status_too_long(size)
    error = refused(outcome, ErrorCode.INVALID_ARGUMENT)
    assert (error.subject, error.subject_id) == ("field", "text")
    assert error.metadata == {"limit": "status_text_bytes", "maximum": str(STATUS_TEXT_BYTES)}


async def test_what_lost_a_race_is_closed(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"), sleep(holding, "nap", s=60), wait_signal(holding), begin(holding, "b"))
    await harness.do(race(holding, "race", "b", "a", "nap", "approved"))
    for command in (finish(holding, "nap"), complete(holding, "a"), fail(holding, "a"), beat(holding, "a", "1")):
        assert await harness.do(command) == refusals.lost_race(command.step_id)
    for command in (begin(holding, "a"), sleep(holding, "nap", s=60), wait_signal(holding)):
        assert the(Known, await harness.do(command)).step.status is StepStatus.ABANDONED
    await harness.do(hand_back(holding))
    assert await harness.do(finish(holding, "nap")) == refusals.lost_race("nap")  # recorded under this very lease


async def test_a_step_is_of_one_kind(harness: StoreHarness) -> None:
    holding = await harness.running()
    made = {
        StepKind.FUNCTION: begin(holding, "function"),
        StepKind.SLEEP: sleep(holding, "sleep", s=60),
        StepKind.SIGNAL: wait_signal(holding, step_id="signal"),
        StepKind.RACE: race(holding, "race", "a"),
        StepKind.PATCH: patch(holding, "patch"),
        StepKind.CHILD: harness.child_command(holding, "child"),
    }
    for command in made.values():
        assert not isinstance(await harness.do(command), Refused)
    for kind in made:
        for requested, command in (
            (KindCode.FUNCTION, begin(holding, kind.value)),
            (KindCode.FUNCTION, complete(holding, kind.value)),
            (KindCode.FUNCTION, fail(holding, kind.value)),
            (KindCode.FUNCTION, beat(holding, kind.value, "1")),
            (KindCode.SLEEP, sleep(holding, kind.value, s=1)),
            (KindCode.SLEEP, finish(holding, kind.value)),
            (KindCode.SIGNAL, wait_signal(holding, step_id=kind.value)),
            (KindCode.RACE, race(holding, kind.value, "a")),
            (KindCode.PATCH, patch(holding, kind.value)),
            (KindCode.CHILD, harness.child_command(holding, kind.value)),
        ):
            if requested.name.lower() != kind.value:
                outcome = await harness.do(command)
                assert outcome == refusals.other_kind(kind.value, KindCode[kind.name], requested), command


async def test_a_child_start_with_a_strangers_request_id_is_refused(harness: StoreHarness) -> None:
    holding = await harness.running()
    stranger = harness.start_command("stranger", workflow_type="child", request_id="taken")
    await harness.do(stranger)
    command = harness.child_command(holding, request_id="taken")
    refused = the(StepFailed, await harness.do(command))
    assert refused.error.message == refusals.foreign_request("taken", stranger.run.run_id).error.message
    assert (await harness.steps(holding.run))[command.step_id].error == refused.error
    assert isinstance(await harness.do(stranger), Existing)


async def test_a_repeated_child_start_returns_the_same_outcome(harness: StoreHarness) -> None:
    holding = await harness.running()
    command = harness.child_command(holding)
    first = the(ChildStarted, await harness.do(command))
    assert (first.created, first.status) == (True, RunStatus.PENDING)
    again = the(ChildStarted, await harness.do(command))
    assert (again.child_run_id, again.created, again.status) == (first.child_run_id, False, RunStatus.PENDING)
    child = await harness.claim_one(workflow_type="child")
    await harness.do(complete_run(RunLease(child.run, child.lease)))
    ended = the(ChildStarted, await harness.do(command))
    assert (ended.child_run_id, ended.created, ended.status) == (first.child_run_id, False, RunStatus.COMPLETED)


async def test_a_child_start_that_met_another_run_fails_again_in_the_same_words(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(harness.start_command("taken", workflow_type="child"))
    command = harness.child_command(holding, workflow_id="taken")
    first = the(StepFailed, await harness.do(command))
    assert (first.error.code, first.error.subject, first.error.subject_id) == (
        ErrorCode.CONFLICT,
        "workflow_id",
        "taken",
    )
    assert await harness.do(command) == first


async def test_limits_are_named_and_numbered(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """`limit` is a name, `maximum` a number, on both stores."""
    holding = await harness.running()
    monkeypatch.setattr("kagzi.core.run.control.SIGNALS_BUFFERED", 2)
    for _ in range(2):
        await harness.signal(holding.run)
    request = harness.signal_request()
    outcome, _ = await harness.store.signal_run("default", run_id=holding.run.run_id, signal=request, now=harness.now)
    assert outcome == refusals.too_many_signals(holding.run.run_id)
    error = refused(outcome, ErrorCode.RESOURCE_EXHAUSTED)
    assert error.metadata == {"limit": "signals_buffered", "maximum": str(SIGNALS_BUFFERED)}


async def test_nothing_to_wait_for_and_nothing_to_cancel(harness: StoreHarness) -> None:
    holding = await harness.running()
    run_id = holding.run.run_id
    assert await harness.do(park(holding)) == refusals.nothing_to_wait_for(run_id)
    assert await harness.do(acknowledge_cancel(holding)) == refusals.not_cancelled(run_id)
    assert await harness.retry(holding.run) == refusals.not_failed(run_id, "running")
    assert await harness.fork(holding.run, "none") == refusals.no_step(run_id, "none")


async def test_a_run_id_that_is_not_a_uuid_is_refused(harness: StoreHarness) -> None:
    """Of a start on the fast path and on the careful one, of a child and of a successor."""
    holding = await harness.running()
    start, child = harness.start_command(), harness.child_command(holding)
    nameless = RunKey("default", "not-a-uuid")
    commands = [
        msgspec.structs.replace(start, run=nameless),
        msgspec.structs.replace(start, run=nameless, on_conflict="replace"),
        msgspec.structs.replace(child, start=msgspec.structs.replace(child.start, run=nameless)),
        continue_as(holding, "not-a-uuid"),
    ]
    for command in commands:
        error = refused(await harness.do(command), ErrorCode.INVALID_ARGUMENT)
        assert (error.subject, error.subject_id) == ("field", "run_id")
    assert await harness.runs() == [await harness.run(holding.run)]


async def test_a_retry_cancels_the_children_that_no_step_has_any_more(harness: StoreHarness) -> None:
    """The cascade of the run's end had not reached them when it was retried."""
    parent = await harness.running()
    await harness.done(parent, "a")
    kept, forgotten = await harness.child(parent, "kept"), await harness.child(parent, "forgotten")
    await harness.write(begin(parent, "b"), complete(parent, "b"))
    await harness.do(fail_run(parent))
    assert await harness.retry(parent.run, "forgotten") == RunStatus.PENDING
    assert harness.effects.children_due
    assert (await harness.poll()).cascade
    assert [end.run for end in (await harness.cascade()).ended] == [forgotten]
    assert (await harness.run(kept)).status == RunStatus.PENDING
    assert not (await harness.poll()).cascade

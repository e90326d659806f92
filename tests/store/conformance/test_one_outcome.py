"""What the stores once decided differently: one code, one subject and one wording, whichever store is asked."""

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.errors import InvalidArgument
from kagzi.core.limits import SIGNALS_BUFFERED, STATUS_TEXT_BYTES
from kagzi.core.records import Held, Lease
from kagzi.core.run import refusals
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Begun, ChildStarted, Existing, Known, Recorded, Refused, Started, StepFailed
from kagzi.core.seams import Clock, Ids
from kagzi.core.states import KindCode, RunStatus, StepKind, StepStatus
from kagzi.engine.checks.operations import Operations
from tests.support.clock import FakeClock
from tests.support.seams import CountingIds

from .verbs import (
    Cellar,
    acknowledge_cancel,
    beat,
    begin,
    complete,
    complete_run,
    fail,
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


def beginnings(cellar: Cellar, holding: Held, step_id: str) -> list[Command]:
    """Every command that may make a step."""
    return [
        begin(holding, step_id),
        begin(holding, step_id, once=True),
        sleep(holding, step_id, s=1),
        wait_signal(holding, step_id=step_id),
        race(holding, step_id, "a"),
        patch(holding, step_id),
        cellar.child_command(holding, step_id),
    ]


@pytest.mark.parametrize("step_id", RESERVED)
async def test_a_reserved_name_is_no_step_of_any_kind(cellar: Cellar, step_id: str) -> None:
    holding = await cellar.running()
    for command in beginnings(cellar, holding, step_id):
        assert await cellar.do(command) == refusals.reserved_step(step_id)
    both = await cellar.write(begin(holding, step_id), complete(holding, step_id))
    assert both == [refusals.reserved_step(step_id), refusals.never_begun(step_id)]
    assert await cellar.steps(holding.run) == {}
    the(Begun, await cellar.do(begin(holding, f"task[1]/{step_id}")))  # only the whole id is the engine's
    await cellar.do(complete_run(holding, "result"))
    assert (await cellar.run(holding.run)).output is not None


@pytest.mark.parametrize("step_id", RESERVED)
def test_a_reserved_name_does_not_even_reach_the_store(step_id: str) -> None:
    clock: Clock = FakeClock()
    ids: Ids = CountingIds()
    operations = Operations(1_000, clock=clock, ids=ids)
    cellar = Cellar(None, FakeClock(), CountingIds())  # type: ignore[arg-type]
    holding = Held(cellar.start_command().run, Lease(1, 7))
    for command in beginnings(cellar, holding, step_id):
        with pytest.raises(InvalidArgument) as raised:
            operations.check(command)
        expected = refusals.reserved_step(step_id).error
        assert (raised.value.message, raised.value.field) == (expected.message, expected.subject_id)


@pytest.mark.parametrize("attempt", [0, 1])
async def test_a_step_that_may_run_once_and_was_lost_has_failed(cellar: Cellar, attempt: int) -> None:
    old = await cellar.running()
    the(Begun, await cellar.do(begin(old, "pay", once=True)))
    new = await cellar.take_over(old)
    step = the(Known, await cellar.do(begin(new, "pay", attempt, once=True))).step
    assert (step.status, step.attempt, step.error) == (StepStatus.FAILED, 1, refusals.lost_once("pay"))
    assert step.error is not None
    assert (step.error.code, step.error.kind) == (ErrorCode.LEASE_LOST, ErrorKind.LOST)
    assert (step.error.subject, step.error.subject_id, step.error.non_retryable) == ("step", "pay", True)
    assert await cellar.do(begin(new, "pay", attempt, once=True)) == Known(step)
    assert await cellar.do(complete(new, "pay")) == refusals.not_current("pay", status=4, recorded=1, attempt=1)
    assert (await cellar.steps(old.run))["pay"].error == step.error


async def test_a_step_that_may_run_once_begins_again_under_its_own_lease(cellar: Cellar) -> None:
    holding = await cellar.running()
    first = the(Begun, await cellar.do(begin(holding, "pay", once=True)))
    assert await cellar.do(begin(holding, "pay", once=True)) == first
    the(Recorded, await cellar.do(complete(holding, "pay")))


async def test_a_step_that_may_run_once_is_nobodys_in_a_fork(cellar: Cellar) -> None:
    """It began in the run that was forked, not in this one."""
    holding = await cellar.running()
    await cellar.write(begin(holding, "pay", once=True), begin(holding, "other"))
    forked = the(Started, await cellar.fork(holding.run, "other"))
    (run,) = [record.run for record in await cellar.runs() if record.run.run_id == forked.run_id]
    await cellar.do(hand_back(holding))
    await cellar.pause(holding.run)
    new = await cellar.hold(run)
    assert the(Begun, await cellar.do(begin(new, "pay", once=True))).attempt == 1


async def test_a_status_that_is_too_long_is_a_wrong_argument(cellar: Cellar) -> None:
    holding = await cellar.running()
    size = STATUS_TEXT_BYTES + 1
    outcome = await cellar.do(say_status(holding, "x" * size))
    assert outcome == refusals.status_too_long(size)
    error = refused(outcome, ErrorCode.INVALID_ARGUMENT)
    assert (error.subject, error.subject_id) == ("field", "text")
    assert error.metadata == {"limit": "status_text_bytes", "maximum": str(STATUS_TEXT_BYTES)}


async def test_what_lost_a_race_is_closed(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(begin(holding, "a"), sleep(holding, "nap", s=60), wait_signal(holding), begin(holding, "b"))
    await cellar.do(race(holding, "race", "b", "a", "nap", "approved"))
    for command in (finish(holding, "nap"), complete(holding, "a"), fail(holding, "a"), beat(holding, "a", "1")):
        assert await cellar.do(command) == refusals.lost_race(command.step_id)
    for command in (begin(holding, "a"), sleep(holding, "nap", s=60), wait_signal(holding)):
        assert the(Known, await cellar.do(command)).step.status is StepStatus.ABANDONED
    await cellar.do(hand_back(holding))
    assert await cellar.do(finish(holding, "nap")) == refusals.lost_race("nap")  # recorded under this very lease


async def test_a_step_is_of_one_kind(cellar: Cellar) -> None:
    holding = await cellar.running()
    made = {
        StepKind.FUNCTION: begin(holding, "function"),
        StepKind.SLEEP: sleep(holding, "sleep", s=60),
        StepKind.SIGNAL: wait_signal(holding, step_id="signal"),
        StepKind.RACE: race(holding, "race", "a"),
        StepKind.PATCH: patch(holding, "patch"),
        StepKind.CHILD: cellar.child_command(holding, "child"),
    }
    for command in made.values():
        assert not isinstance(await cellar.do(command), Refused)
    for kind in made:
        for asked, command in (
            (KindCode.FUNCTION, begin(holding, kind.value)),
            (KindCode.FUNCTION, complete(holding, kind.value)),
            (KindCode.FUNCTION, fail(holding, kind.value)),
            (KindCode.FUNCTION, beat(holding, kind.value, "1")),
            (KindCode.SLEEP, sleep(holding, kind.value, s=1)),
            (KindCode.SLEEP, finish(holding, kind.value)),
            (KindCode.SIGNAL, wait_signal(holding, step_id=kind.value)),
            (KindCode.RACE, race(holding, kind.value, "a")),
            (KindCode.PATCH, patch(holding, kind.value)),
            (KindCode.CHILD, cellar.child_command(holding, kind.value)),
        ):
            if asked.name.lower() != kind.value:
                outcome = await cellar.do(command)
                assert outcome == refusals.other_kind(kind.value, KindCode[kind.name], asked), command


async def test_a_child_start_with_a_strangers_request_id_is_refused(cellar: Cellar) -> None:
    holding = await cellar.running()
    stranger = cellar.start_command("stranger", workflow_type="child", request_id="taken")
    await cellar.do(stranger)
    command = cellar.child_command(holding, request_id="taken")
    assert await cellar.do(command) == refusals.foreign_request("taken", stranger.run.run_id)
    assert await cellar.steps(holding.run) == {}
    assert isinstance(await cellar.do(stranger), Existing)


async def test_a_child_start_that_is_repeated_says_what_it_said(cellar: Cellar) -> None:
    holding = await cellar.running()
    command = cellar.child_command(holding)
    first = the(ChildStarted, await cellar.do(command))
    assert (first.created, first.status) == (True, RunStatus.PENDING)
    again = the(ChildStarted, await cellar.do(command))
    assert (again.child_run_id, again.created, again.status) == (first.child_run_id, False, RunStatus.PENDING)
    child = await cellar.claim_one(workflow_type="child")
    await cellar.do(complete_run(Held(child.run, child.lease)))
    ended = the(ChildStarted, await cellar.do(command))
    assert (ended.child_run_id, ended.created, ended.status) == (first.child_run_id, False, RunStatus.COMPLETED)


async def test_a_child_start_that_met_another_run_fails_again_in_the_same_words(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(cellar.start_command("taken", workflow_type="child"))
    command = cellar.child_command(holding, workflow_id="taken")
    first = the(StepFailed, await cellar.do(command))
    assert (first.error.code, first.error.subject, first.error.subject_id) == (
        ErrorCode.CONFLICT,
        "workflow_id",
        "taken",
    )
    assert await cellar.do(command) == first


async def test_limits_are_named_and_numbered(cellar: Cellar, monkeypatch: pytest.MonkeyPatch) -> None:
    """`limit` is a name, `maximum` a number, on both stores."""
    holding = await cellar.running()
    for module in ("core.run.control", "store.postgres.write.signals", "store.sqlite.write.signals"):
        monkeypatch.setattr(f"kagzi.{module}.SIGNALS_BUFFERED", 2)
    for _ in range(2):
        await cellar.signal(holding.run)
    given = cellar.signal_given()
    outcome = await cellar.store.signal_run("default", run_id=holding.run.run_id, signal=given, now=cellar.now)
    assert outcome == refusals.too_many_signals(holding.run.run_id)
    error = refused(outcome, ErrorCode.RESOURCE_EXHAUSTED)
    assert error.metadata == {"limit": "signals_buffered", "maximum": str(SIGNALS_BUFFERED)}


async def test_nothing_to_wait_for_and_nothing_to_cancel(cellar: Cellar) -> None:
    holding = await cellar.running()
    run_id = holding.run.run_id
    assert await cellar.do(park(holding)) == refusals.nothing_to_wait_for(run_id)
    assert await cellar.do(acknowledge_cancel(holding)) == refusals.not_cancelled(run_id)
    assert await cellar.retry(holding.run) == refusals.not_failed(run_id, "running")
    assert await cellar.fork(holding.run, "none") == refusals.no_step(run_id, "none")

"""Done is done (P2): a step is recorded once, whatever is repeated, and later holders get its recorded result."""

import sys

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.records import Payload, RunKey
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run.outcomes import Begun, Known, Recorded, RetryScheduled, StepFailed, TimerSet
from kagzi.core.states import StepKind, StepStatus

from .verbs import (
    AT_ONCE,
    STEADY,
    StoreHarness,
    begin,
    complete,
    complete_run,
    fail,
    finish,
    hand_back,
    payload,
    refused,
    sleep,
    the,
)


async def test_a_step_begins_and_is_completed(harness: StoreHarness) -> None:
    holding = await harness.running()
    begun = the(Begun, await harness.do(begin(holding, "charge#2", name="charge")))
    assert (begun.at, begun.attempt) == (harness.now, 1)
    began_at = harness.now
    open_step = (await harness.steps(holding.run))["charge#2"]
    assert (open_step.name, open_step.kind, open_step.status) == ("charge", StepKind.FUNCTION, StepStatus.RUNNING)
    assert (open_step.begun_seq, open_step.seq, open_step.attempt) == (begun.seq, 0, 1)

    harness.clock.advance(us=3)
    output = Payload(b"\x00\x01", {"encoding": "x"})
    recorded = the(Recorded, await harness.do(complete(holding, "charge#2", output)))
    assert recorded.at == harness.now
    assert recorded.seq > begun.seq
    step = (await harness.steps(holding.run))["charge#2"]
    assert (step.status, step.seq, step.output, step.error) == (StepStatus.COMPLETED, recorded.seq, output, None)
    assert (step.created_at, step.started_at, step.finished_at) == (began_at, began_at, harness.now)
    assert (step.worker_id, step.attempts) == ("worker-1", ())
    assert await harness.store.get_step(holding.run, "charge#2") == step
    assert (await harness.run(holding.run)).last_seq >= recorded.seq


async def test_begin_and_completion_may_come_together(harness: StoreHarness) -> None:
    holding = await harness.running()
    before = harness.store.transactions
    begun, recorded = await harness.write(begin(holding, "a"), complete(holding, "a", "1"))
    assert harness.store.transactions - before == 1
    assert 0 < the(Begun, begun).seq < the(Recorded, recorded).seq
    step = (await harness.steps(holding.run))["a"]
    assert (step.begun_seq, step.seq, step.output) == (the(Begun, begun).seq, the(Recorded, recorded).seq, payload("1"))


async def test_all_that_a_begin_says_is_kept(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(
        begin(
            holding,
            "parallel[3]/charge",
            name="charge",
            retry=STEADY,
            timeout_ms=1_500,
            input=payload("in"),
            parent_step_id="parallel",
            parallel_group_id="g1",
        )
    )
    step = (await harness.steps(holding.run))["parallel[3]/charge"]
    assert (step.retry, step.timeout_ms, step.input) == (STEADY, 1_500, payload("in"))
    assert (step.parent_step_id, step.parallel_group_id) == ("parallel", "g1")


@pytest.mark.parametrize("attempt", [0, 1])
async def test_a_repeated_begin_answers_the_same(harness: StoreHarness, attempt: int) -> None:
    holding = await harness.running()
    first = the(Begun, await harness.do(begin(holding, "a", attempt)))
    before = await harness.steps(holding.run)
    harness.clock.advance(s=1)
    again = the(Begun, await harness.do(begin(holding, "a", attempt)))
    assert (again.seq, again.attempt) == (first.seq, 1)
    assert await harness.steps(holding.run) == before


@pytest.mark.parametrize("attempt", [0, 1])
async def test_a_repeated_completion_answers_the_same_and_keeps_the_first_output(
    harness: StoreHarness, attempt: int
) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "a"))
    first = the(Recorded, await harness.do(complete(holding, "a", "first", attempt)))
    before = await harness.steps(holding.run)
    harness.clock.advance(s=1)
    assert await harness.do(complete(holding, "a", "second", attempt)) == first
    assert await harness.steps(holding.run) == before


async def test_a_whole_batch_repeated_answers_the_same(harness: StoreHarness) -> None:
    # After a reconnect everything unacknowledged is sent again, byte for byte.
    holding = await harness.running()
    batch = [
        begin(holding, "a"),
        complete(holding, "a"),
        begin(holding, "b", retry=NO_RETRY),
        fail(holding, "b"),
        begin(holding, "c", retry=STEADY),
        fail(holding, "c"),
        sleep(holding, "nap", s=60),
        sleep(holding, "no nap", s=0),
        begin(holding, "d"),
    ]
    first = await harness.write(*batch)
    before = await harness.steps(holding.run)
    harness.clock.advance(s=1)
    again = await harness.write(*batch)
    assert await harness.steps(holding.run) == before
    assert again[1] == first[1]
    assert again[3] == first[3]
    retried, repeated = the(RetryScheduled, first[5]), the(RetryScheduled, again[5])
    assert (retried.next_attempt, retried.retry_at) == (repeated.next_attempt, repeated.retry_at)
    assert the(TimerSet, again[6]).wake_at == the(TimerSet, first[6]).wake_at
    assert again[7] == first[7]
    assert the(Begun, again[8]).seq == the(Begun, first[8]).seq
    assert [type(again[n]) for n in (0, 2, 4)] == [Known, Known, Begun]


async def test_a_repeat_is_known_even_after_the_lease_is_gone(harness: StoreHarness) -> None:
    # The acknowledgement was lost, then the lease: the worker may be told what was recorded, and nothing more.
    old = await harness.running()
    first = await harness.done(old, "a", "mine")
    new = await harness.take_over(old)
    before = await harness.picture(old.run)
    assert await harness.do(complete(old, "a", "mine")) == first
    assert await harness.picture(old.run) == before
    the(Known, await harness.do(begin(new, "a")))


async def test_a_completion_recorded_by_an_older_holder_is_known_to_the_newer(harness: StoreHarness) -> None:
    old = await harness.running()
    recorded = await harness.done(old, "a", "value")
    new = await harness.take_over(old)
    for attempt in (0, 1):
        known = the(Known, await harness.do(begin(new, "a", attempt))).step
        assert (known.step_id, known.status, known.output) == ("a", StepStatus.COMPLETED, payload("value"))
        assert (known.seq, known.at) == (recorded.seq, recorded.at)
    assert (await harness.steps(old.run))["a"].output == payload("value")


async def test_a_newer_holder_cannot_overwrite_a_result(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.done(old, "a", "value")
    new = await harness.take_over(old)
    before = await harness.steps(old.run)
    await harness.write(complete(new, "a", "other"), fail(new, "a"))
    assert await harness.steps(old.run) == before


@pytest.mark.parametrize("attempt", [0, 1])
async def test_a_step_of_a_lost_worker_begins_again_as_the_same_attempt(harness: StoreHarness, attempt: int) -> None:
    old = await harness.running()
    first = the(Begun, await harness.do(begin(old, "a")))
    new = await harness.take_over(old)
    begun = the(Begun, await harness.do(begin(new, "a", attempt)))
    assert begun.attempt == 1, "a lost worker is not a failed attempt"
    step = (await harness.steps(old.run))["a"]
    assert (step.started_at, step.worker_id, step.attempt) == (harness.now, "worker-2", 1)
    assert step.begun_seq == begun.seq > first.seq
    the(Recorded, await harness.do(complete(new, "a", "once")))
    assert (await harness.steps(old.run))["a"].output == payload("once")


async def test_a_step_begun_again_keeps_its_place_in_the_history(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.write(begin(old, "a"), begin(old, "b"))
    await harness.done(old, "c")
    new = await harness.take_over(old)
    await harness.do(begin(new, "a"))
    page = await harness.store.history(new.run, new.lease, 0)
    assert page is not None
    assert sorted(step.step_id for step in page.steps) == ["a", "b", "c"]
    assert [step.begun_seq for step in page.steps] == sorted(step.begun_seq for step in page.steps)


async def test_begin_and_completion_of_a_lost_step_may_come_together(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.do(begin(old, "a"))
    new = await harness.take_over(old)
    begun, recorded = await harness.write(begin(new, "a"), complete(new, "a", "anew"))
    assert the(Begun, begun).attempt == 1
    the(Recorded, recorded)
    assert (await harness.steps(old.run))["a"].output == payload("anew")


async def test_a_newer_holder_must_begin_before_it_completes(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.do(begin(old, "a"))
    new = await harness.take_over(old)
    outcome = await harness.do(complete(new, "a"))
    # Either is safe: the lease is proven. What must not happen is a result under the older lease's name.
    if not isinstance(outcome, Recorded):
        refused(outcome, ErrorCode.PRECONDITION_FAILED)
        assert (await harness.steps(old.run))["a"].status == StepStatus.RUNNING


@pytest.mark.parametrize("attempt", [0, 1, 2])
async def test_a_step_never_begun_has_no_end(harness: StoreHarness, attempt: int) -> None:
    holding = await harness.running()
    outcomes = await harness.write(
        complete(holding, "never", "x", attempt), fail(holding, "never", attempt=attempt), finish(holding, "never")
    )
    for outcome in outcomes:
        error = refused(outcome, ErrorCode.PRECONDITION_FAILED)
        assert "never" in error.message
    assert await harness.steps(holding.run) == {}


async def test_an_attempt_that_is_not_the_current_one_is_refused(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "a", retry=STEADY))
    before = await harness.steps(holding.run)
    for command in (
        begin(holding, "a", 2),
        complete(holding, "a", "x", 2),
        fail(holding, "a", attempt=2),
        begin(holding, "fresh", 2),
    ):
        refused(await harness.do(command), ErrorCode.PRECONDITION_FAILED)
    assert await harness.steps(holding.run) == before

    the(RetryScheduled, await harness.do(fail(holding, "a")))
    before = await harness.steps(holding.run)
    for command in (
        begin(holding, "a", 3),
        complete(holding, "a", "x", 2),  # not begun yet
        fail(holding, "a", attempt=2),
    ):
        refused(await harness.do(command), ErrorCode.PRECONDITION_FAILED)
    refused(await harness.do(complete(holding, "a", "x", 1)), ErrorCode.PRECONDITION_FAILED)
    assert await harness.steps(holding.run) == before


async def test_a_repeated_begin_of_an_attempt_that_failed_meanwhile_is_no_refusal(harness: StoreHarness) -> None:
    # Begin and failure are both sent again when neither was acknowledged; a refused begin would cost the worker its
    # run.
    old = await harness.running()
    batch = [begin(old, "a", retry=STEADY), fail(old, "a")]
    await harness.write(*batch)
    before = await harness.steps(old.run)
    begun, failed = await harness.write(*batch)
    the(Begun, begun)
    assert the(RetryScheduled, failed).next_attempt == 2
    assert await harness.steps(old.run) == before
    new = await harness.take_over(old)
    refused(await harness.do(begin(new, "a", 1)), ErrorCode.PRECONDITION_FAILED)


async def test_a_failed_step_is_not_completed_afterwards(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a", retry=NO_RETRY), fail(holding, "a"))
    before = await harness.steps(holding.run)
    outcome = await harness.do(complete(holding, "a"))
    if not isinstance(outcome, StepFailed):
        refused(outcome, ErrorCode.PRECONDITION_FAILED)
    assert await harness.steps(holding.run) == before


async def test_the_kind_of_a_step_is_fixed(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "work"), sleep(holding, "nap", s=60))
    before = await harness.steps(holding.run)
    for command in (begin(holding, "nap"), sleep(holding, "work", s=1)):
        error = refused(await harness.do(command), ErrorCode.PRECONDITION_FAILED)
        assert "sleep" in error.message.lower()
        assert "function" in error.message.lower()
    for command in (complete(holding, "nap"), fail(holding, "nap"), finish(holding, "work")):
        refused(await harness.do(command), ErrorCode.PRECONDITION_FAILED)
    assert await harness.steps(holding.run) == before


async def test_the_kind_is_fixed_within_one_batch_too(harness: StoreHarness) -> None:
    holding = await harness.running()
    outcomes = await harness.write(begin(holding, "a"), sleep(holding, "a", s=1), complete(holding, "a", "kept"))
    the(Begun, outcomes[0])
    refused(outcomes[1], ErrorCode.PRECONDITION_FAILED)
    the(Recorded, outcomes[2])
    assert (await harness.steps(holding.run))["a"].output == payload("kept")


def limit_steps(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Wherever a store has put the limit: fifty thousand steps would take a while."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("kagzi.core", "kagzi.store")) and hasattr(module, "STEPS_PER_RUN"):
            monkeypatch.setattr(module, "STEPS_PER_RUN", limit)


async def test_a_run_has_a_limited_number_of_steps(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_steps(monkeypatch, 5)
    holding = await harness.running(input=payload("in"), context=payload("not a step"))
    for n in range(5):
        await harness.done(holding, f"step-{n}")
    for command in (begin(holding, "one too many"), sleep(holding, "one more", s=1)):
        error = refused(await harness.do(command), ErrorCode.RESOURCE_EXHAUSTED)
        assert "5" in error.message
    the(Known, await harness.do(begin(holding, "step-0")))
    assert len(await harness.steps(holding.run)) == 5
    await harness.do(complete_run(holding))


async def test_the_limit_of_steps_holds_within_one_batch(
    harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_steps(monkeypatch, 5)
    holding = await harness.running()
    outcomes = await harness.write(*(begin(holding, f"step-{n}") for n in range(8)))
    assert [type(outcome) for outcome in outcomes[:5]] == [Begun] * 5
    for outcome in outcomes[5:]:
        refused(outcome, ErrorCode.RESOURCE_EXHAUSTED)
    assert len(await harness.steps(holding.run)) == 5


async def test_steps_are_listed_in_the_order_in_which_they_were_begun(harness: StoreHarness) -> None:
    holding = await harness.running(input=payload("in"))
    await harness.write(*(begin(holding, f"{n}", name="odd" if n % 2 else "even") for n in (3, 1, 2, 5, 4)))
    await harness.write(complete(holding, "5", "five"), complete(holding, "3", "three"))
    store, run = harness.store, holding.run

    first = await store.list_steps(run, name=None, after_begun_seq=0, limit=2, payloads=True)
    assert first is not None
    assert ([step.step_id for step in first.rows], first.has_more) == (["3", "1"], True)
    rest = await store.list_steps(run, name=None, after_begun_seq=first.rows[-1].begun_seq, limit=3, payloads=True)
    assert rest is not None
    assert ([step.step_id for step in rest.rows], rest.has_more) == (["2", "5", "4"], False)
    assert rest.rows[1].output == payload("five")

    odd = await store.list_steps(run, name="odd", after_begun_seq=0, limit=10, payloads=False)
    assert odd is not None
    assert [(step.step_id, step.output, step.input) for step in odd.rows] == [
        ("3", None, None),
        ("1", None, None),
        ("5", None, None),
    ]


async def test_what_is_no_step_is_not_shown_as_one(harness: StoreHarness) -> None:
    holding = await harness.running(input=payload("in"), context=payload("ctx"))
    await harness.do(complete_run(holding))
    assert await harness.steps(holding.run) == {}
    for step_id in ("$input", "$context", "$output", "nothing"):
        assert await harness.store.get_step(holding.run, step_id) is None
    unknown = RunKey("default", harness.ids.run_id(harness.now))
    assert await harness.store.list_steps(unknown, name=None, after_begun_seq=0, limit=1, payloads=True) is None


async def test_a_run_with_input_and_context_hands_out_neither_as_history(harness: StoreHarness) -> None:
    holding = await harness.running(input=payload("in"), context=payload("ctx"))
    await harness.done(holding, "a")
    await harness.do(hand_back(holding))
    assert [step.step_id for step in (await harness.claim_one()).history.steps] == ["a"]


async def test_attempts_of_one_step_in_one_batch_take_effect_in_order(harness: StoreHarness) -> None:
    holding = await harness.running()
    outcomes = await harness.write(
        begin(holding, "a", 1, retry=AT_ONCE),
        fail(holding, "a", attempt=1),
        begin(holding, "a", 2),
        fail(holding, "a", attempt=2),
        begin(holding, "a", 3),
        complete(holding, "a", "third time lucky", 3),
    )
    kinds = [Begun, RetryScheduled, Begun, RetryScheduled, Begun, Recorded]
    assert [type(outcome) for outcome in outcomes] == kinds
    step = (await harness.steps(holding.run))["a"]
    assert (step.status, step.attempt, step.output) == (StepStatus.COMPLETED, 3, payload("third time lucky"))
    assert [attempt.attempt for attempt in step.attempts] == [1, 2]

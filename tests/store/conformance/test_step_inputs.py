"""What a step was called with, for people: sent with its begin or with a failed attempt, and kept from then on."""

from msgspec.structs import replace

from kagzi.core.error_details import ErrorDetail
from kagzi.core.records import Payload, RunKey, RunLease, StepRecord
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run.outcomes import Started

from .verbs import StoreHarness, begin, complete, fail, fail_run, the, wait_signal

ARGUMENTS = Payload(b'{"amount":5}', {"encoding": "plain"})


OTHERS = Payload(b'{"amount":6}')


async def the_step(harness: StoreHarness, leased: RunLease, step_id: str = "s") -> StepRecord:
    step = await harness.store.get_step(leased.run, step_id)
    assert step is not None
    return step


async def failed_twice(harness: StoreHarness) -> RunLease:
    """The first time with ARGUMENTS, the second time with OTHERS."""
    run = await harness.running()
    await harness.do(begin(run, "s"))
    await harness.do(replace(fail(run, "s"), input=ARGUMENTS))
    harness.clock.advance(s=3_600)
    await harness.do(begin(run, "s", 2))
    await harness.do(replace(fail(run, "s", attempt=2), input=OTHERS))
    return run


async def shown(harness: StoreHarness, leased: RunLease, step_id: str) -> Payload | None:
    step = await harness.store.get_step(leased.run, step_id)
    assert step is not None
    return step.input


async def test_a_failed_attempt_brings_the_arguments_and_a_later_one_keeps_them(harness: StoreHarness) -> None:
    run = await harness.running()
    await harness.do(begin(run, "s"))
    assert await shown(harness, run, "s") is None
    await harness.do(replace(fail(run, "s"), input=ARGUMENTS))
    assert await shown(harness, run, "s") == ARGUMENTS
    harness.clock.advance(s=3_600)
    await harness.do(begin(run, "s", 2))
    await harness.do(complete(run, "s", attempt=2))
    assert await shown(harness, run, "s") == ARGUMENTS


async def test_a_begin_brings_them_and_a_failure_without_them_keeps_them(harness: StoreHarness) -> None:
    run = await harness.running()
    await harness.do(begin(run, "s", input=ARGUMENTS))
    await harness.do(fail(run, "s"))
    assert await shown(harness, run, "s") == ARGUMENTS


async def test_a_wait_keeps_the_schema_of_its_signal(harness: StoreHarness) -> None:
    run = await harness.running()
    schema = Payload(b'{"type":"integer"}')
    await harness.do(wait_signal(run, "open", input=schema))
    assert await shown(harness, run, "open") == schema


async def test_each_failed_attempt_keeps_its_own(harness: StoreHarness) -> None:
    run = await failed_twice(harness)
    step = await the_step(harness, run)
    assert [attempt.input for attempt in step.attempts] == [ARGUMENTS, OTHERS]
    assert step.input == OTHERS
    rows = await harness.store.list_steps(run.run, name=None, after_begun_seq=0, limit=10, payloads=True)
    assert rows is not None
    assert rows.rows == (step,)
    rows = await harness.store.list_steps(run.run, name=None, after_begun_seq=0, limit=10, payloads=False)
    assert rows is not None
    assert [attempt.input for attempt in rows.rows[0].attempts] == [None, None]


async def test_an_attempt_without_arguments_has_none(harness: StoreHarness) -> None:
    run = await harness.running()
    await harness.do(begin(run, "s", input=ARGUMENTS))
    await harness.do(fail(run, "s"))
    assert [attempt.input for attempt in (await the_step(harness, run)).attempts] == [None]


async def test_a_begin_of_a_later_attempt_brings_its_own(harness: StoreHarness) -> None:
    run = await harness.running()
    await harness.do(begin(run, "s", input=ARGUMENTS))
    await harness.do(fail(run, "s"))
    harness.clock.advance(s=3_600)
    await harness.do(begin(run, "s", 2, input=OTHERS))
    assert await shown(harness, run, "s") == OTHERS


async def test_a_begin_after_a_lost_lease_brings_its_own(harness: StoreHarness) -> None:
    run = await harness.running()
    await harness.do(begin(run, "s", input=ARGUMENTS))
    again = await harness.take_over(run)
    await harness.do(begin(again, "s", input=OTHERS))
    assert await shown(harness, again, "s") == OTHERS


async def test_an_explicit_retry_keeps_those_of_the_failure(harness: StoreHarness) -> None:
    run = await harness.running()
    await harness.do(begin(run, "s", retry=NO_RETRY))
    await harness.do(replace(fail(run, "s"), input=ARGUMENTS))
    await harness.do(fail_run(run, ErrorDetail(type="E", message="s failed", subject="step", subject_id="s")))
    await harness.retry(run.run)
    new = await harness.hold(run.run)
    await harness.do(begin(new, "s", 0))
    (before,) = (await the_step(harness, new)).attempts
    assert before.input == ARGUMENTS


async def test_a_fork_takes_them_along(harness: StoreHarness) -> None:
    run = await failed_twice(harness)
    harness.clock.advance(s=3_600)
    await harness.do(begin(run, "s", 3))
    await harness.do(complete(run, "s", attempt=3))
    forked = the(Started, await harness.fork(run.run, "", workflow_id="fork"))
    attempts = (await harness.steps(RunKey(run.run.namespace, forked.run_id)))["s"].attempts
    assert [attempt.input for attempt in attempts] == [ARGUMENTS, OTHERS]

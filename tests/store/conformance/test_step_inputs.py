"""What a step was called with, for people: sent with its begin or with a failed attempt, and kept from then on."""

from msgspec.structs import replace

from kagzi.core.records import Payload, RunLease

from .verbs import StoreHarness, begin, complete, fail, wait_signal

ARGUMENTS = Payload(b'{"amount":5}', {"encoding": "plain"})


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

"""Steps that a retry discards: kept for people, outside of the history, bounded, gone with the run."""

import msgspec
import pytest

from kagzi.core.error_details import ErrorDetail, encode_detail
from kagzi.core.pages.timeline import TimelineQuery, TimelineRetry
from kagzi.core.records import RunKey, RunLease, StepRecord
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run.outcomes import Begun
from kagzi.core.states import RunStatus, StepKind, StepStatus

from .verbs import (
    AT_ONCE,
    BOOM,
    StoreHarness,
    begin,
    by_id,
    complete,
    complete_run,
    fail,
    fail_run,
    leased,
    payload,
    sleep,
    the,
    wait_signal,
)

S = StepStatus
FATAL = msgspec.structs.replace(BOOM, non_retryable=True)
TWICE = msgspec.structs.replace(AT_ONCE, maximum_attempts=2)


def because_of(step_id: str) -> ErrorDetail:
    return ErrorDetail(type="kagzi.StepError", message="no", subject="step", subject_id=step_id, cause=BOOM)


async def forgotten(harness: StoreHarness, run: RunKey, **options: object) -> list[StepRecord]:
    arguments = {"name": None, "after": None, "limit": 1_000, "payloads": True, **options}
    rows = await harness.store.list_forgotten_steps(run, **arguments)  # type: ignore[arg-type]
    assert rows is not None
    assert not rows.has_more
    return list(rows.rows)


async def ids(harness: StoreHarness, run: RunKey) -> list[str]:
    return [step.step_id for step in await forgotten(harness, run)]


async def failed_run(harness: StoreHarness, **options: object) -> RunLease:
    """a, charge (failed at its second attempt), b, c (open): and the run failed because of charge."""
    holding = await harness.running(**options)
    await harness.done(holding, "a", "1")
    harness.clock.advance(s=1)
    await harness.write(begin(holding, "charge", retry=TWICE), fail(holding, "charge"))
    harness.clock.advance(s=1)
    await harness.write(begin(holding, "charge", 2, retry=TWICE), fail(holding, "charge", attempt=2))
    await harness.done(holding, "b", "2")
    await harness.do(begin(holding, "c"))
    harness.clock.advance(s=1)
    await harness.do(fail_run(holding, because_of("charge")))
    return holding


async def test_a_retry_keeps_what_it_discards(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    before = (await harness.picture(last.run))[1]
    assert await ids(harness, last.run) == []
    harness.clock.advance(s=10)
    await harness.retry(last.run)
    charge, b, c = await forgotten(harness, last.run)
    assert [step.step_id for step in (charge, b, c)] == ["charge", "b", "c"]
    assert (charge.status, charge.attempt, charge.error) == (S.FAILED, 2, before["charge"].error)
    (attempt,) = charge.attempts
    assert (attempt.attempt, attempt.error, attempt.before_retry) == (1, BOOM, False)
    assert (b.status, b.output, b.seq) == (S.COMPLETED, payload("2"), before["b"].seq)
    assert (c.status, c.output, c.finished_at) == (S.ABANDONED, None, before["c"].finished_at)
    assert {step.retried_at for step in (charge, b, c)} == {harness.now}
    (retry_seq,) = {step.retry_seq for step in (charge, b, c)}
    assert retry_seq > b.seq
    for step in (charge, b, c):
        was = before[step.step_id]
        times = (step.created_at, step.started_at, step.finished_at, step.begun_seq, step.worker_id, step.claim)
        assert times == (was.created_at, was.started_at, was.finished_at, was.begun_seq, was.worker_id, was.claim)
        assert await harness.store.get_forgotten_step(last.run, step.step_id, retry_seq) == step
    assert await harness.store.get_forgotten_step(last.run, "a", retry_seq) is None
    assert await harness.store.get_forgotten_step(last.run, "b", retry_seq - 1) is None


async def test_the_history_does_not_have_them(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    await harness.retry(last.run)
    claimed = await harness.claim_one()
    assert [name for name, step in by_id(claimed.history.steps).items() if step.seq] == ["a"]
    assert "b" not in await harness.steps(last.run)
    record = await harness.run(last.run)
    assert (record.awaits_signal, record.retrying_steps) == (0, 0)
    new = leased(claimed)
    the(Begun, await harness.do(begin(new, "charge", 0)))
    await harness.do(complete(new, "charge", "paid", 0))
    await harness.done(new, "b", "3")
    await harness.do(complete_run(new))
    assert (await harness.steps(last.run))["b"].output == payload("3")
    assert [step.output for step in await forgotten(harness, last.run) if step.step_id == "b"] == [payload("2")]


async def test_a_fork_has_none_of_them(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    await harness.retry(last.run)
    started = await harness.fork(last.run, "")
    run = RunKey("default", started.run_id)  # type: ignore[union-attr]
    assert await ids(harness, run) == []


async def test_two_retries_in_a_row(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    harness.clock.advance(s=1)
    await harness.retry(last.run)
    first_at = harness.now
    new = leased(await harness.claim_one())
    harness.clock.advance(s=1)
    await harness.write(begin(new, "charge", 0), fail(new, "charge", FATAL, attempt=0))
    await harness.done(new, "b", "3")
    await harness.do(fail_run(new, because_of("charge")))
    harness.clock.advance(s=1)
    await harness.retry(last.run)
    steps = await forgotten(harness, last.run)
    assert [(step.step_id, step.retried_at) for step in steps] == [
        *(("charge", harness.now), ("b", harness.now)),
        *(("charge", first_at), ("b", first_at), ("c", first_at)),
    ]
    assert [step.output for step in steps if step.step_id == "b"] == [payload("3"), payload("2")]
    latest, earlier = (step for step in steps if step.step_id == "charge")
    assert [(each.attempt, each.before_retry) for each in latest.attempts] == [(1, True), (2, True)]
    assert (latest.attempt, earlier.attempt, len(earlier.attempts)) == (1, 2, 1)
    timeline = await harness.store.timeline(last.run, TimelineQuery())
    assert timeline is not None
    assert timeline.retries == (
        TimelineRetry(retry_seq=latest.retry_seq, retried_at=harness.now, steps=2),
        TimelineRetry(retry_seq=earlier.retry_seq, retried_at=first_at, steps=3),
    )


async def test_what_has_not_begun_since_the_last_retry_is_not_kept_again(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "slow"))
    await harness.done(holding, "quick")
    await harness.write(begin(holding, "charge", retry=NO_RETRY), fail(holding, "charge"))
    harness.clock.advance(s=1)
    await harness.write(complete(holding, "slow", "1"), fail_run(holding, because_of("charge")))
    await harness.retry(holding.run)
    assert await ids(harness, holding.run) == ["slow", "charge"]
    new = leased(await harness.claim_one())
    await harness.do(fail_run(new))
    await harness.retry(holding.run, "quick")  # slow and charge are as the first retry left them
    steps = await forgotten(harness, holding.run)
    assert [step.step_id for step in steps] == ["quick", "slow", "charge"]


async def test_a_step_begun_before_the_cut_is_kept_with_its_result(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "slow"))
    await harness.done(holding, "quick")
    await harness.write(begin(holding, "charge", retry=NO_RETRY), fail(holding, "charge"))
    await harness.write(complete(holding, "slow", "late"), fail_run(holding, because_of("charge")))
    await harness.retry(holding.run)
    slow, charge = await forgotten(harness, holding.run)
    assert (slow.step_id, slow.status, slow.output) == ("slow", S.COMPLETED, payload("late"))
    assert (charge.step_id, charge.status) == ("charge", S.FAILED)


async def test_children(harness: StoreHarness) -> None:
    """One that completed, one that failed and one that was cancelled with the run."""
    last = await harness.running()
    await harness.done(last, "a", "1")
    await harness.write(begin(last, "charge", retry=NO_RETRY), fail(last, "charge"))
    done = await harness.child(last, "done")
    failed = await harness.child(last, "failed")
    stopped = await harness.child(last, "stopped")
    await harness.do(complete_run(await harness.hold(done, limit=1), "of the child"))
    await harness.do(fail_run(await harness.hold(failed, limit=1)))
    await harness.do(fail_run(last, because_of("charge")))
    await harness.cascade()
    await harness.retry(last.run)
    steps = {step.step_id: step for step in await forgotten(harness, last.run)}
    assert list(steps) == ["charge", "done", "failed", "stopped"]
    assert {name: (step.status, step.child_run_id) for name, step in steps.items() if step.kind is StepKind.CHILD} == {
        "done": (S.COMPLETED, done.run_id),
        "failed": (S.FAILED, failed.run_id),
        "stopped": (S.ABANDONED, stopped.run_id),
    }
    assert steps["done"].output == payload("of the child")
    await harness.do(fail_run(leased(await harness.claim_one())))
    await harness.retry(last.run)  # nothing has begun since
    assert len(await forgotten(harness, last.run)) == 4


async def test_a_child_begun_before_the_cut_that_is_started_again(harness: StoreHarness) -> None:
    last = await harness.running()
    child = await harness.child(last)
    await harness.done(last, "a", "1")
    await harness.do(fail_run(last))
    await harness.cascade()
    await harness.retry(last.run)
    (step,) = await forgotten(harness, last.run)
    assert (step.step_id, step.status, step.child_run_id) == ("child", S.ABANDONED, child.run_id)


async def test_signals_sleeps_and_a_wait_that_keeps_its_signal(harness: StoreHarness) -> None:
    last = await harness.running()
    await harness.do(wait_signal(last, "early"))  # begun before the cut: gets its signal again
    await harness.done(last, "a", "1")
    await harness.write(begin(last, "charge", retry=NO_RETRY), fail(last, "charge"))
    await harness.signal(last.run, "early", "one")
    await harness.do(wait_signal(last, "late"))
    await harness.signal(last.run, "late", "two")
    await harness.do(sleep(last, "nap", s=60))
    await harness.do(wait_signal(last, "never"))
    await harness.do(fail_run(last, because_of("charge")))
    await harness.retry(last.run)
    steps = {step.step_id: step for step in await forgotten(harness, last.run)}
    assert {name: (step.status, step.output) for name, step in steps.items()} == {
        "charge": (S.FAILED, None),
        "late": (S.COMPLETED, payload("two")),
        "nap": (S.ABANDONED, None),
        "never": (S.ABANDONED, None),
    }
    assert steps["nap"].wake_at is not None
    assert (await harness.steps(last.run))["early"].output == payload("one")
    record = await harness.run(last.run)
    assert (record.status, record.awaits_signal) == (RunStatus.PENDING, 0)
    new = leased(await harness.claim_one())
    await harness.do(wait_signal(new, "late"))
    assert (await harness.steps(last.run))["late"].output == payload("two")


async def test_pages_and_names(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    await harness.retry(last.run)
    whole = await forgotten(harness, last.run)
    records: list[StepRecord] = []
    after = None
    for _ in whole:
        page = await harness.store.list_forgotten_steps(last.run, name=None, after=after, limit=1, payloads=True)
        assert page is not None
        (step,) = page.rows
        records.append(step)
        after = (step.retry_seq, step.begun_seq)
        assert page.has_more == (len(records) < len(whole))
    assert records == whole
    assert [step.step_id for step in await forgotten(harness, last.run, name="b")] == ["b"]
    assert {step.output for step in await forgotten(harness, last.run, payloads=False)} == {None}


async def test_other_namespaces_see_nothing(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    await harness.retry(last.run)
    (step, *_) = await forgotten(harness, last.run)
    for run in (RunKey("elsewhere", last.run.run_id), RunKey("default", "no id")):
        assert await harness.store.list_forgotten_steps(run, name=None, after=None, limit=9, payloads=True) is None
        assert await harness.store.get_forgotten_step(run, step.step_id, step.retry_seq) is None


def bounded(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    for package in ("sqlite", "postgres"):
        monkeypatch.setattr(f"kagzi.store.{package}.run.retry_and_fork.{limit}", value)


async def fail_again(harness: StoreHarness, run: RunKey, output: str) -> None:
    new = await harness.hold(run)
    harness.clock.advance(s=1)
    await harness.write(begin(new, "charge", 0), fail(new, "charge", FATAL, attempt=0))
    await harness.done(new, "b", output)
    await harness.do(fail_run(new, because_of("charge")))
    harness.clock.advance(s=1)
    await harness.retry(run)


async def test_the_oldest_go_first(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, "FORGOTTEN_STEPS", 4)
    last = await failed_run(harness)
    await harness.retry(last.run)
    await fail_again(harness, last.run, "3")
    assert await ids(harness, last.run) == ["charge", "b", "b", "c"]
    await fail_again(harness, last.run, "4")
    assert [step.output for step in await forgotten(harness, last.run)] == [None, payload("4"), None, payload("3")]
    bounded(monkeypatch, "FORGOTTEN_STEPS", 1)  # one retry alone may discard more: those begun last are kept
    await fail_again(harness, last.run, "5")
    assert [step.output for step in await forgotten(harness, last.run)] == [payload("5")]


async def test_their_bytes_are_bounded(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    error = len(encode_detail(BOOM))
    last = await failed_run(harness)
    await harness.retry(last.run)
    bounded(monkeypatch, "FORGOTTEN_BYTES", 4_000 + 3 * error // 2)
    await fail_again(harness, last.run, "x" * 4_000)
    assert await ids(harness, last.run) == ["charge", "b", "b", "c"]
    await fail_again(harness, last.run, "y" * (4_000 + error))
    assert [step.output for step in await forgotten(harness, last.run)] == [payload("y" * (4_000 + error))]


@pytest.mark.parametrize("long", [False, True])
async def test_they_go_with_their_run(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    for package in ("sqlite", "postgres"):
        monkeypatch.setattr(f"kagzi.store.{package}.operate.retention.LONG_HISTORY_SEQ", 1 if long else 1_000)
    command = harness.start_command("w")
    await harness.do(command)
    holding = leased(await harness.claim_one())
    await harness.write(begin(holding, "charge", retry=NO_RETRY), fail(holding, "charge"))
    await harness.do(fail_run(holding, because_of("charge")))
    await harness.retry(holding.run)
    assert await ids(harness, holding.run) == ["charge"]
    await harness.do(complete_run(leased(await harness.claim_one())))
    assert list(await harness.store.delete_runs("default", [holding.run.run_id], until=2**62)) == [holding.run.run_id]
    while await harness.store.purge_leftovers(1):
        pass
    await harness.do(command)
    assert await ids(harness, holding.run) == []


async def test_they_count_as_stored_bytes(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    before = (await harness.store.measure_runs("default", None, 10)).stored_bytes
    await harness.retry(last.run)  # what they stored, they still store, and the failure is now in the row of the step
    assert (await harness.store.measure_runs("default", None, 10)).stored_bytes == before

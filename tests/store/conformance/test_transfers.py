"""A run goes from one store to another, and back, and is the same: its records, its history, and how it goes on."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import msgspec
import pytest

from kagzi.core.errors import AlreadyExists, InvalidArgument, NotFound, Unavailable
from kagzi.core.ids import is_of, made_of, uuid7
from kagzi.core.limits import Settings
from kagzi.core.records import Payload, RunFilter, RunKey, RunRecord, StepRecord
from kagzi.core.run.outcomes import ChildStarted, Parked, RunClosed
from kagzi.core.states import RunStatus
from kagzi.engine.services.keys.audit import Audit
from kagzi.engine.services.namespaces import Namespaces
from kagzi.engine.services.transfers import Transfers
from kagzi.store.protocol import Store
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .places import Place, empty_postgres, memory_place
from .verbs import (
    AT_ONCE,
    STEADY,
    StoreHarness,
    beat,
    begin,
    complete,
    complete_run,
    continue_as,
    diverged,
    fail,
    fail_run,
    park,
    patch,
    payload,
    race,
    say_status,
    sleep,
    the,
    wait_signal,
)


class Silence:
    """In place of those who tell workers and timers: nobody is here to be told."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def transfers(store: Store, clock: FakeClock) -> Transfers:
    silence = cast("Any", Silence())
    return Transfers(
        store,
        clock=clock,
        ids=CountingIds(7),
        settings=(settings := Settings()),
        namespaces=Namespaces(store, settings, clock, lambda: None, Audit(store, clock=clock, ids=CountingIds(8))),
        dispatcher=silence,
    )


async def exported(harness: StoreHarness, run: RunKey) -> bytes:
    return b"".join([line async for line in transfers(harness.store, harness.clock).export(run.namespace, run.run_id)])


async def chunks(data: bytes, size: int = 1_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def brought(harness: StoreHarness, data: bytes, namespace: str = "default") -> bool:
    """Whether it was there already."""
    answer = await transfers(harness.store, harness.clock).import_run(namespace, chunks(data))
    return answer.already_exists


@pytest.fixture
async def other(harness: StoreHarness) -> AsyncIterator[StoreHarness]:
    """Another store, with the same clock."""
    place = memory_place()
    yield StoreHarness(await place.open(), harness.clock, CountingIds(3))
    await place.close()


@pytest.fixture
async def third(place: Place, harness: StoreHarness) -> AsyncIterator[StoreHarness]:
    """The first store again, empty: call it when the first one is not needed any more."""
    fresh = memory_place()
    yield StoreHarness(harness.store if place.shared else await fresh.open(), harness.clock, CountingIds(4))
    await fresh.close()


# --- every kind of run ------------------------------------------------------------------------------------------------


async def populate(harness: StoreHarness) -> None:
    await _lost(harness)
    await _ended(harness)
    await _waiting(harness)
    await _stopped(harness)
    await _related(harness)


async def _lost(harness: StoreHarness) -> None:
    """Attempts that were lost with their workers: before others, after others, and before an explicit retry."""
    first = await harness.running()
    await harness.do(begin(first, "a", retry=AT_ONCE))
    second = await harness.take_over(first)
    await harness.write(begin(second, "a"), fail(second, "a"), begin(second, "a", 2), begin(second, "b"))
    third = await harness.take_over(second)
    await harness.write(begin(third, "a", 2), complete(third, "a", "x", 2), begin(third, "b"), fail(third, "b"))
    await harness.do(fail_run(third))
    the(RunStatus, await harness.retry(third.run, "b"))
    fourth = await harness.hold(third.run)
    await harness.do(begin(fourth, "b"))
    await harness.take_over(fourth)
    lost = {step.step_id: [attempt.lost for attempt in step.attempts] for step in await steps_of(harness, first.run)}
    assert lost == {"a": [True, False, True], "b": [True, False, True]}


async def _ended(harness: StoreHarness) -> None:
    holding = await harness.running(
        labels={"team": "a", "tier": "b"}, input=payload('{"total": 9.5}'), context=payload('"trace"'), priority=7
    )
    await harness.done(holding, "plain", '{"spaces":  1.0}')
    odd = Payload(b"\x00\xff\n", {"encoding": "secret"})
    await harness.write(begin(holding, "odd", input=odd, timeout_ms=500, once=True), complete(holding, "odd", odd))
    await harness.write(begin(holding, "lines"), complete(holding, "lines", '{\n"a": 1}'))
    failed = msgspec.structs.replace(fail(holding, "shaky"), input=odd)
    await harness.write(begin(holding, "shaky", retry=AT_ONCE), failed)
    await harness.write(
        begin(holding, "shaky", 2), beat(holding, "shaky", "half", 2), complete(holding, "shaky", "x", 2)
    )
    await harness.do(patch(holding, "patched"))
    await harness.do(say_status(holding, "nearly", 0.75))
    await harness.do(complete_run(holding, '"result"'))

    for options in ({}, {"retry": STEADY}):
        failed = await harness.running(**options)
        await harness.done(failed, "a")
        await harness.write(begin(failed, "b"), fail(failed, "b"))
        await harness.do(fail_run(failed))

    reopened = await harness.running()
    await harness.done(reopened, "a")
    await harness.write(begin(reopened, "b", retry=AT_ONCE), fail(reopened, "b"))
    await harness.write(begin(reopened, "b", 2), complete(reopened, "b", "late", 2))
    await harness.do(fail_run(reopened))
    the(RunStatus, await harness.retry(reopened.run, "b"))

    cancelled = await harness.start()
    await harness.store.cancel_run(cancelled, "not needed", harness.now, harness.now + 5)
    terminated = await harness.running()
    await harness.terminate(terminated.run)
    chain = await harness.running(workflow_id="chain")
    await harness.do(continue_as(chain, harness.ids.run_id(harness.now)))
    source = await harness.running()
    await harness.done(source, "first")
    await harness.done(source, "second")
    await harness.fork(source.run, "second")


async def _waiting(harness: StoreHarness) -> None:
    await harness.asleep()
    await harness.start(start_at=harness.now + 3_600_000_000, deadline_at=harness.now + 7_200_000_000)
    blocker = await harness.start("blocker")
    await harness.start("blocked", blocked_by=blocker.run_id)
    limited = await harness.running()
    await harness.do(wait_signal(limited, s=30))
    await harness.signal(limited.run, "something-else", "early")
    the(Parked, await harness.do(park(limited, "approved")))
    got = await harness.running()
    await harness.signal(got.run, "approved", "here")
    await harness.do(wait_signal(got))
    retrying = await harness.running()
    await harness.write(begin(retrying, "later", retry=STEADY), fail(retrying, "later"))
    await harness.do(park(retrying, "later"))
    racing = await harness.running()
    await harness.do(sleep(racing, "slow", s=100))
    await harness.do(wait_signal(racing, "never"))
    await harness.done(racing, "quick")
    await harness.do(race(racing, "race", "quick", "slow", "never"))
    await harness.do(sleep(racing, "nap", s=5))
    await harness.do(park(racing, "nap"))


async def _stopped(harness: StoreHarness) -> None:
    paused = await harness.start(concurrency_key="customer-1", schedule_id="nightly")
    await harness.pause(paused)
    later = await harness.start(start_at=harness.now + 3_600_000_000)
    await harness.pause(later)
    misfit = await harness.running()
    await harness.done(misfit, "a")
    await harness.do(diverged(misfit))
    adopted = await harness.running()
    await harness.do(diverged(adopted))
    the(RunStatus, await harness.adopt(adopted.run, "build-2"))
    stopping = await harness.running()
    await harness.do(sleep(stopping, "nap", s=100))
    await harness.do(park(stopping, "nap"))
    await harness.store.cancel_run(stopping.run, "please", harness.now, harness.now + 300_000_000)


async def _related(harness: StoreHarness) -> None:
    parent = await harness.running(workflow_id="parent")
    await harness.child(parent, "one", workflow_id="child-one")
    await harness.child(parent, "two", workflow_id="child-two", on_close="abandon")
    done = await harness.child(parent, "three", workflow_id="child-three", workflow_type="quick")
    await harness.do(complete_run(await harness.hold(done), '"from the child"'))
    the(Parked, await harness.do(park(parent, "one", "two")))
    guest = await harness.running(workflow_id="guest")
    the(ChildStarted, await harness.do(harness.child_command(guest, "attached", workflow_id="child-one", attach=True)))
    the(Parked, await harness.do(park(guest, "attached")))


# --- the trip ---------------------------------------------------------------------------------------------------------


async def all_runs(harness: StoreHarness) -> list[RunRecord]:
    rows = await harness.store.list_runs("default", RunFilter(), None, 1_000)
    records = [await harness.store.get_run("default", run_id=listed.run.run_id) for listed in reversed(rows.rows)]
    return [record for record in records if record is not None]


async def steps_of(harness: StoreHarness, run: RunKey) -> Sequence[StepRecord]:
    rows = await harness.store.list_steps(run, name=None, after_begun_seq=0, limit=1_000, payloads=True)
    assert rows is not None
    return rows.rows


async def all_steps_of(harness: StoreHarness, run: RunKey) -> Sequence[StepRecord]:
    """With those that retries have discarded."""
    discarded = await harness.store.list_forgotten_steps(run, name=None, after=None, limit=1_000, payloads=True)
    assert discarded is not None
    return (*await steps_of(harness, run), *discarded.rows)


async def travel(source: StoreHarness, target: StoreHarness) -> None:
    for record in await all_runs(source):
        assert not await brought(target, await exported(source, record.run))


async def check_same(
    source_runs: list[RunRecord], steps: dict[str, Sequence[StepRecord]], target: StoreHarness
) -> None:
    records = {record.run.run_id: record for record in await all_runs(target)}
    assert set(records) == {record.run.run_id for record in source_runs}
    for record in source_runs:
        arrived = records[record.run.run_id]
        expected = record
        if record.status is RunStatus.RUNNING:
            expected = msgspec.structs.replace(record, status=RunStatus.PENDING, worker_id=None, ready_at=target.now)
        assert arrived.claims >= record.claims  # it goes on: no lease from before may fit
        assert arrived == msgspec.structs.replace(expected, claims=arrived.claims)
        assert await all_steps_of(target, record.run) == tuple(map(unclaimed, steps[record.run.run_id]))


def unclaimed(step: StepRecord) -> StepRecord:
    """As an import has it: claims are those of the store in which they were made."""
    attempts = tuple(msgspec.structs.replace(attempt, claim=0) for attempt in step.attempts)
    return msgspec.structs.replace(step, claim=0, attempts=attempts)


async def test_there_and_back_again(
    harness: StoreHarness, other: StoreHarness, third: StoreHarness, place: Place, request: pytest.FixtureRequest
) -> None:
    await populate(harness)
    runs = await all_runs(harness)
    assert {record.status for record in runs} == set(RunStatus), "a state is missing: this test would not show it"
    steps = {record.run.run_id: await all_steps_of(harness, record.run) for record in runs}
    assert any(step.retry_seq for each in steps.values() for step in each), "no retry has discarded a step"
    await travel(harness, other)
    await check_same(runs, steps, other)
    if place.shared:
        await empty_postgres(request.getfixturevalue("migrated_postgres"))
    await travel(other, third)
    await check_same(runs, steps, third)


async def test_labels_and_other_filters_find_it(harness: StoreHarness, other: StoreHarness) -> None:
    run = await harness.start(labels={"team": "a"}, schedule_id="nightly")
    await brought(other, await exported(harness, run))
    for where in (RunFilter(labels={"team": "a"}), RunFilter(statuses=(RunStatus.PENDING,))):
        rows = await other.store.list_runs("default", where, None, 10)
        assert [record.run for record in rows.rows] == [run]


async def test_it_goes_on_where_it_was(harness: StoreHarness, other: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "before", '"kept"')
    await harness.do(sleep(holding, "nap", s=60))
    await harness.do(park(holding, "nap"))
    await brought(other, await exported(harness, holding.run))
    other.clock.advance(s=61)
    await other.fire()
    claimed = await other.claim_one()
    assert claimed.run == holding.run
    assert claimed.lease.counter == holding.lease.counter + 1
    history = {step.step_id: step for step in claimed.history.steps}
    assert history["before"].output == Payload(b'"kept"')
    assert history["nap"].seq > history["before"].seq > 0


async def test_a_running_one_is_pending_and_its_old_holder_is_refused(
    harness: StoreHarness, other: StoreHarness
) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"))
    data = await exported(harness, holding.run)
    assert b'"note":"the run was running' in data
    await brought(other, data)
    claimed = await other.claim_one()
    assert claimed.lease.counter > holding.lease.counter + 1 or claimed.lease.nonce != holding.lease.nonce
    assert [step.step_id for step in claimed.history.steps] == ["a"]


async def test_signals_find_the_step_that_waits(harness: StoreHarness, other: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding))
    await harness.do(park(holding, "approved"))
    await brought(other, await exported(harness, holding.run))
    assert (await other.signal(holding.run)).delivered
    assert (await other.run(holding.run)).status is RunStatus.PENDING


@pytest.mark.parametrize("first", ["parent", "child"])
async def test_a_family_meets_again_in_either_order(harness: StoreHarness, other: StoreHarness, first: str) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    await harness.do(park(parent, "child"))
    pieces = [await exported(harness, parent.run), await exported(harness, child)]
    for data in pieces if first == "parent" else reversed(pieces):
        await brought(other, data)
    leased = await other.hold(child)
    await other.do(complete_run(leased, '"done"'))
    assert (await other.run(parent.run)).status is RunStatus.PENDING
    step = await other.store.get_step(parent.run, "child")
    assert step is not None
    assert step.output == Payload(b'"done"')


@pytest.mark.parametrize("first", ["parent", "child"])
async def test_a_child_that_ended_after_its_parent_was_exported(
    harness: StoreHarness, other: StoreHarness, first: str
) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    await harness.do(park(parent, "child"))
    old_parent = await exported(harness, parent.run)
    await harness.do(complete_run(await harness.hold(child), '"done"'))
    pieces = [old_parent, await exported(harness, child)]
    for data in pieces if first == "parent" else reversed(pieces):
        await brought(other, data)
    assert (await other.run(parent.run)).status is RunStatus.PENDING


async def test_who_was_to_begin_after_a_run_that_is_not_here_begins(harness: StoreHarness, other: StoreHarness) -> None:
    blocker = await harness.start()
    blocked = await harness.start(blocked_by=blocker.run_id)
    await brought(other, await exported(harness, blocked))
    assert (await other.run(blocked)).status is RunStatus.PENDING


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_the_same_again_is_already_there(harness: StoreHarness, other: StoreHarness) -> None:
    await populate(harness)
    for record in await all_runs(harness):
        data = await exported(harness, record.run)
        assert not await brought(other, data)
        assert await brought(other, data), f"the second time {record} is another"
        assert await brought(harness, data), f"where it came from {record} is another"


async def test_other_content_is_refused(harness: StoreHarness, other: StoreHarness) -> None:
    holding = await harness.running()
    data = await exported(harness, holding.run)
    await brought(other, data)
    await harness.done(holding, "more")
    with pytest.raises(AlreadyExists, match="with other content"):
        await brought(other, await exported(harness, holding.run))
    assert not await brought(other, data, namespace="elsewhere"), "no id of one namespace is in the way of another"


async def test_a_family_moves_to_another_namespace_of_the_same_store(harness: StoreHarness) -> None:
    """Under other ids, by which its members find each other, whoever comes first."""
    holding = await harness.running()
    child = await harness.child(holding)
    the(Parked, await harness.do(park(holding)))
    files = {run: await exported(harness, run) for run in (holding.run, child)}
    for namespace, order in (("first", (holding.run, child)), ("second", (child, holding.run))):
        moved = [RunKey(namespace, made_of(namespace, run.run_id)) for run in (holding.run, child)]
        for run in order:
            assert not await brought(harness, files[run], namespace)
            assert await brought(harness, files[run], namespace), "the second time it is another"
        assert (await harness.steps(moved[0]))["child"].child_run_id == moved[1].run_id
        assert (await harness.run(moved[1])).parent_run_id == moved[0].run_id
        child_lease = await harness.hold(moved[1])
        the(RunClosed, await harness.do(complete_run(child_lease)))
        assert harness.effects.changed == (moved[0],)
    assert (await harness.run(holding.run)).status is RunStatus.SLEEPING


async def test_ids_from_before_there_were_markers(harness: StoreHarness) -> None:
    """Whoever has one keeps it; what comes in anew has an id of its namespace, and finds relatives by the ids that they
    have."""
    old = [RunKey("default", uuid7(harness.now, number)) for number in (1, 2)]
    assert not any(is_of("default", run.run_id) for run in old)
    await harness.do(msgspec.structs.replace(harness.start_command("old"), run=old[0]))
    holding = await harness.hold(old[0])
    command = harness.child_command(holding, "child")
    start = msgspec.structs.replace(command.start, run=old[1])
    the(ChildStarted, await harness.do(msgspec.structs.replace(command, start=start)))
    the(Parked, await harness.do(park(holding)))
    data = await exported(harness, old[0])
    assert await brought(harness, data), "it is here, and the same"
    await harness.terminate(old[0])
    await harness.store.cascade(harness.now, harness.now + 1, 10)
    await harness.store.delete_runs("default", [old[0].run_id], until=2**62)
    assert not await brought(harness, data)
    new = RunKey("default", made_of("default", old[0].run_id))
    assert (await harness.steps(new))["child"].child_run_id == old[1].run_id


async def test_an_active_workflow_id_is_refused_without_a_trace(harness: StoreHarness, other: StoreHarness) -> None:
    run = await harness.start("order-1")
    await other.start("order-1")
    data = await exported(harness, run)
    with pytest.raises(AlreadyExists, match="order-1"):
        await brought(other, data)
    assert await other.store.get_run("default", run_id=run.run_id) is None
    assert not await brought(other, data, namespace="elsewhere"), "there it is free"


async def test_a_request_made_here_too_is_refused(harness: StoreHarness, other: StoreHarness) -> None:
    run = await harness.start("one", request_id="same")
    await other.start("two", request_id="same")
    with pytest.raises(AlreadyExists, match="same start"):
        await brought(other, await exported(harness, run))


async def test_unknown_and_foreign_runs_are_not_found(harness: StoreHarness) -> None:
    run = await harness.start()
    for missing in (
        RunKey("other", run.run_id),
        RunKey("default", harness.ids.run_id(harness.now)),
        RunKey("default", "x"),
    ):
        with pytest.raises(NotFound):
            await exported(harness, missing)


async def test_a_damaged_file_leaves_no_trace(harness: StoreHarness) -> None:
    holding = await harness.running(input=payload("1"))
    for number in range(5):
        await harness.done(holding, f"s{number}")
    await harness.signal(holding.run, "early")
    await harness.do(complete_run(holding))
    lines = (await exported(harness, holding.run)).splitlines(keepends=True)
    await harness.store.delete_runs("default", [holding.run.run_id], until=2**62)
    damages: list[tuple[list[bytes], str]] = [
        (lines[:-1], "cut off"),
        (lines[:-2] + lines[-1:], "lines are missing"),
        (lines[1:], "line 1 is not a run"),
        ([lines[0], *lines[2:]], "lines are missing"),
        ([*lines[:2], lines[1], *lines[2:]], "line 3.*occurs twice"),
        ([lines[0], lines[0], *lines[1:]], "line 2 is another run"),
        ([*lines, lines[1]], "after the end"),
        ([lines[0], lines[1][:-20] + b"\n", *lines[2:]], "line 2"),
        ([lines[0].replace(b'"kagzi":1', b'"kagzi":9'), *lines[1:]], "format"),
        ([lines[0].replace(b'"completed"', b'"sleeping"'), *lines[1:]], "line 1.*does not fit"),
        ([lines[0], lines[1].replace(b'"seq":2', b'"seq":9999'), *lines[2:]], "line 2.*step.seq=9999"),
        ([lines[0], lines[1].replace(b'"s0"', b'"s\\u0000"'), *lines[2:]], "line 2.*control character"),
        ([lines[0], lines[-2], *lines[1:-2], lines[-1]], "out of order"),
        ([lines[0], lines[1].replace(b'"step_id"', b'"step"'), *lines[2:]], "unknown field"),
        ([lines[0].replace(b'"json":1', b'"base64":"?"'), *lines[1:]], "line 1.*base64"),
        ([], "cut off"),
    ]
    for damaged, message in damages:
        with pytest.raises(InvalidArgument, match=message):
            await brought(harness, b"".join(damaged))
        assert await all_runs(harness) == []
    while await harness.store.purge_leftovers(100):
        pass
    assert not await brought(harness, b"".join(lines)), "what the others left is in the way"


async def test_a_discarded_step_that_cannot_be_is_refused(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"), complete(holding, "a"))
    await harness.do(fail_run(holding))
    await harness.retry(holding.run, "a")
    await harness.do(complete_run(await harness.hold(holding.run)))
    lines = (await exported(harness, holding.run)).splitlines(keepends=True)
    await harness.store.delete_runs("default", [holding.run.run_id], until=2**62)
    [place] = [number for number, line in enumerate(lines) if line.startswith(b'{"forgotten"')]
    line, before, end = lines[place], lines[:place], lines[-1]
    damages = [
        ([*before, line, line, end.replace(b'"forgotten":1', b'"forgotten":2')], "the same step"),
        ([*before, end], "end.forgotten is 1, but 0 came"),
        ([*before, line.replace(b'"completed"', b'"running"'), end], "forgotten.status is running"),
        ([*before, line.replace(b'"completed"', b'"failed"'), end], "forgotten.error does not fit"),
        ([*before, line.replace(b'"retry_seq":', b'"retry_seq":9'), end], "forgotten.retry_seq=9"),
    ]
    for damaged, message in damages:
        with pytest.raises(InvalidArgument, match=message):
            await brought(harness, b"".join(damaged))
        assert await all_runs(harness) == []
    while await harness.store.purge_leftovers(100):
        pass
    assert not await brought(harness, b"".join(lines))


async def test_two_at_once_are_one(harness: StoreHarness) -> None:
    key = RunKey("default", run := harness.ids.run_id(harness.now))
    assert await harness.store.begin_import(run, "one", harness.now, harness.now - 1) == "open"
    assert await harness.store.begin_import(run, "two", harness.now, harness.now - 1) == "busy"
    assert await harness.store.begin_import(run, "one", harness.now, harness.now - 1) == "open", "a repeat"
    harness.clock.advance(s=100)
    assert await harness.store.begin_import(run, "two", harness.now, harness.now - 1) == "open", (
        "the first has gone away"
    )
    assert await harness.store.import_parts(key, "one", [], harness.now) is None
    await harness.store.abandon_imports(token="two")
    assert await harness.store.import_parts(key, "two", [], harness.now) is None


async def test_what_is_half_in_cannot_be_seen(harness: StoreHarness, other: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    image = await harness.store.export_run(holding.run)
    parts = await harness.store.export_steps(holding.run, 0, 10)
    assert image is not None
    assert await other.store.begin_import(holding.run.run_id, "t", other.now, 0) == "open"
    assert await other.store.import_parts(holding.run, "t", parts, other.now) == 1
    assert await all_runs(other) == []
    assert await other.store.list_steps(holding.run, name=None, after_begun_seq=0, limit=9, payloads=True) is None
    with pytest.raises(Unavailable):
        await brought(other, await exported(harness, holding.run))

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
from kagzi.engine.services.namespaces import Namespaces
from kagzi.engine.services.transfers import Transfers
from kagzi.store.protocol import Changed, Store
from tests.support.clock import FakeClock
from tests.support.seams import CountingIds

from .places import Place, empty_postgres, memory_place
from .verbs import (
    AT_ONCE,
    STEADY,
    Cellar,
    beat,
    begin,
    complete,
    complete_run,
    diverged,
    fail,
    fail_run,
    go_on_as,
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
        namespaces=Namespaces(store, settings, clock),
        news=silence,
        timers=silence,
    )


async def exported(cellar: Cellar, run: RunKey) -> bytes:
    return b"".join([line async for line in transfers(cellar.store, cellar.clock).export(run.namespace, run.run_id)])


async def chunks(data: bytes, size: int = 1_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def brought(cellar: Cellar, data: bytes, namespace: str = "default") -> bool:
    """Whether it was there already."""
    answer = await transfers(cellar.store, cellar.clock).import_run(namespace, chunks(data))
    return answer.already_exists


@pytest.fixture
async def other(cellar: Cellar) -> AsyncIterator[Cellar]:
    """Another store, with the same clock."""
    place = memory_place()
    yield Cellar(await place.open(), cellar.clock, CountingIds(3))
    await place.close()


@pytest.fixture
async def third(place: Place, cellar: Cellar) -> AsyncIterator[Cellar]:
    """The first store again, empty: call it when the first one is not needed any more."""
    fresh = memory_place()
    yield Cellar(cellar.store if place.shared else await fresh.open(), cellar.clock, CountingIds(4))
    await fresh.close()


# --- every kind of run -------------------------------------------------------------------------------------------------------


async def populate(cellar: Cellar) -> None:
    await _lost(cellar)
    await _ended(cellar)
    await _waiting(cellar)
    await _stopped(cellar)
    await _related(cellar)


async def _lost(cellar: Cellar) -> None:
    """Attempts that were lost with their workers: before others, after others, and before an explicit retry."""
    first = await cellar.running()
    await cellar.do(begin(first, "a", retry=AT_ONCE))
    second = await cellar.take_over(first)
    await cellar.write(begin(second, "a"), fail(second, "a"), begin(second, "a", 2), begin(second, "b"))
    third = await cellar.take_over(second)
    await cellar.write(begin(third, "a", 2), complete(third, "a", "x", 2), begin(third, "b"), fail(third, "b"))
    await cellar.do(fail_run(third))
    the(Changed, await cellar.retry(third.run, "b"))
    fourth = await cellar.hold(third.run)
    await cellar.do(begin(fourth, "b"))
    await cellar.take_over(fourth)
    lost = {step.step_id: [attempt.lost for attempt in step.attempts] for step in await steps_of(cellar, first.run)}
    assert lost == {"a": [True, False, True], "b": [True, False, True]}


async def _ended(cellar: Cellar) -> None:
    holding = await cellar.running(
        labels={"team": "a", "tier": "b"}, input=payload('{"total": 9.5}'), context=payload('"trace"'), priority=7
    )
    await cellar.done(holding, "plain", '{"spaces":  1.0}')
    odd = Payload(b"\x00\xff\n", {"encoding": "secret"})
    await cellar.write(begin(holding, "odd", input=odd, timeout_ms=500, once=True), complete(holding, "odd", odd))
    await cellar.write(begin(holding, "lines"), complete(holding, "lines", '{\n"a": 1}'))
    await cellar.write(begin(holding, "shaky", retry=AT_ONCE), fail(holding, "shaky"))
    await cellar.write(
        begin(holding, "shaky", 2), beat(holding, "shaky", "half", 2), complete(holding, "shaky", "x", 2)
    )
    await cellar.do(patch(holding, "patched"))
    await cellar.do(say_status(holding, "nearly", 0.75))
    await cellar.do(complete_run(holding, '"result"'))

    for options in ({}, {"retry": STEADY}):
        failed = await cellar.running(**options)
        await cellar.done(failed, "a")
        await cellar.write(begin(failed, "b"), fail(failed, "b"))
        await cellar.do(fail_run(failed))

    reopened = await cellar.running()
    await cellar.done(reopened, "a")
    await cellar.write(begin(reopened, "b", retry=AT_ONCE), fail(reopened, "b"))
    await cellar.write(begin(reopened, "b", 2), complete(reopened, "b", "late", 2))
    await cellar.do(fail_run(reopened))
    the(Changed, await cellar.retry(reopened.run, "b"))

    cancelled = await cellar.start()
    await cellar.store.cancel_run(cancelled, "not needed", cellar.now, cellar.now + 5)
    terminated = await cellar.running()
    await cellar.terminate(terminated.run)
    chain = await cellar.running(workflow_id="chain")
    await cellar.do(go_on_as(chain, cellar.ids.run_id(cellar.now)))
    source = await cellar.running()
    await cellar.done(source, "first")
    await cellar.done(source, "second")
    await cellar.fork(source.run, "second")


async def _waiting(cellar: Cellar) -> None:
    await cellar.asleep()
    await cellar.start(start_at=cellar.now + 3_600_000_000, deadline_at=cellar.now + 7_200_000_000)
    blocker = await cellar.start("blocker")
    await cellar.start("blocked", blocked_by=blocker.run_id)
    limited = await cellar.running()
    await cellar.do(wait_signal(limited, s=30))
    await cellar.signal(limited.run, "something-else", "early")
    the(Parked, await cellar.do(park(limited, "approved")))
    got = await cellar.running()
    await cellar.signal(got.run, "approved", "here")
    await cellar.do(wait_signal(got))
    retrying = await cellar.running()
    await cellar.write(begin(retrying, "later", retry=STEADY), fail(retrying, "later"))
    await cellar.do(park(retrying, "later"))
    racing = await cellar.running()
    await cellar.do(sleep(racing, "slow", s=100))
    await cellar.do(wait_signal(racing, "never"))
    await cellar.done(racing, "quick")
    await cellar.do(race(racing, "race", "quick", "slow", "never"))
    await cellar.do(sleep(racing, "nap", s=5))
    await cellar.do(park(racing, "nap"))


async def _stopped(cellar: Cellar) -> None:
    paused = await cellar.start(concurrency_key="customer-1", schedule_id="nightly")
    await cellar.pause(paused)
    later = await cellar.start(start_at=cellar.now + 3_600_000_000)
    await cellar.pause(later)
    misfit = await cellar.running()
    await cellar.done(misfit, "a")
    await cellar.do(diverged(misfit))
    stopping = await cellar.running()
    await cellar.do(sleep(stopping, "nap", s=100))
    await cellar.do(park(stopping, "nap"))
    await cellar.store.cancel_run(stopping.run, "please", cellar.now, cellar.now + 300_000_000)


async def _related(cellar: Cellar) -> None:
    parent = await cellar.running(workflow_id="parent")
    await cellar.child(parent, "one", workflow_id="child-one")
    await cellar.child(parent, "two", workflow_id="child-two", on_close="abandon")
    done = await cellar.child(parent, "three", workflow_id="child-three", workflow_type="quick")
    await cellar.do(complete_run(await cellar.hold(done), '"from the child"'))
    the(Parked, await cellar.do(park(parent, "one", "two")))
    guest = await cellar.running(workflow_id="guest")
    the(ChildStarted, await cellar.do(cellar.child_command(guest, "attached", workflow_id="child-one", attach=True)))
    the(Parked, await cellar.do(park(guest, "attached")))


# --- the trip ----------------------------------------------------------------------------------------------------------------


async def all_runs(cellar: Cellar) -> list[RunRecord]:
    rows = await cellar.store.list_runs("default", RunFilter(), None, 1_000)
    found = [await cellar.store.get_run("default", run_id=listed.run.run_id) for listed in reversed(rows.rows)]
    return [record for record in found if record is not None]


async def steps_of(cellar: Cellar, run: RunKey) -> Sequence[StepRecord]:
    rows = await cellar.store.list_steps(run, name=None, after_begun_seq=0, limit=1_000, payloads=True)
    assert rows is not None
    return rows.rows


async def travel(source: Cellar, target: Cellar) -> None:
    for record in await all_runs(source):
        assert not await brought(target, await exported(source, record.run))


async def check_same(source_runs: list[RunRecord], steps: dict[str, Sequence[StepRecord]], target: Cellar) -> None:
    found = {record.run.run_id: record for record in await all_runs(target)}
    assert set(found) == {record.run.run_id for record in source_runs}
    for record in source_runs:
        arrived = found[record.run.run_id]
        expected = record
        if record.status is RunStatus.RUNNING:
            expected = msgspec.structs.replace(record, status=RunStatus.PENDING, worker_id=None)
        assert arrived == expected
        assert await steps_of(target, record.run) == steps[record.run.run_id]


async def test_there_and_back_again(
    cellar: Cellar, other: Cellar, third: Cellar, place: Place, request: pytest.FixtureRequest
) -> None:
    await populate(cellar)
    runs = await all_runs(cellar)
    assert {record.status for record in runs} == set(RunStatus), "a state is missing: this test would not show it"
    steps = {record.run.run_id: await steps_of(cellar, record.run) for record in runs}
    await travel(cellar, other)
    await check_same(runs, steps, other)
    if place.shared:
        await empty_postgres(request.getfixturevalue("migrated_postgres"))
    await travel(other, third)
    await check_same(runs, steps, third)


async def test_labels_and_other_filters_find_it(cellar: Cellar, other: Cellar) -> None:
    run = await cellar.start(labels={"team": "a"}, schedule_id="nightly")
    await brought(other, await exported(cellar, run))
    for where in (RunFilter(labels={"team": "a"}), RunFilter(statuses=(RunStatus.PENDING,))):
        rows = await other.store.list_runs("default", where, None, 10)
        assert [record.run for record in rows.rows] == [run]


async def test_it_goes_on_where_it_was(cellar: Cellar, other: Cellar) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "before", '"kept"')
    await cellar.do(sleep(holding, "nap", s=60))
    await cellar.do(park(holding, "nap"))
    await brought(other, await exported(cellar, holding.run))
    other.clock.advance(s=61)
    await other.fire()
    claimed = await other.claim_one()
    assert claimed.run == holding.run
    assert claimed.lease.counter == holding.lease.counter + 1
    history = {step.step_id: step for step in claimed.history.steps}
    assert history["before"].output == Payload(b'"kept"')
    assert history["nap"].seq > history["before"].seq > 0


async def test_a_running_one_is_pending_and_its_old_holder_is_refused(cellar: Cellar, other: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(begin(holding, "a"))
    data = await exported(cellar, holding.run)
    assert b'"note":"it was running' in data
    await brought(other, data)
    claimed = await other.claim_one()
    assert claimed.lease.counter > holding.lease.counter + 1 or claimed.lease.nonce != holding.lease.nonce
    assert [step.step_id for step in claimed.history.steps] == ["a"]


async def test_signals_find_the_step_that_waits(cellar: Cellar, other: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(wait_signal(holding))
    await cellar.do(park(holding, "approved"))
    await brought(other, await exported(cellar, holding.run))
    assert (await other.signal(holding.run)).delivered
    assert (await other.run(holding.run)).status is RunStatus.PENDING


@pytest.mark.parametrize("first", ["parent", "child"])
async def test_a_family_meets_again_in_either_order(cellar: Cellar, other: Cellar, first: str) -> None:
    parent = await cellar.running()
    child = await cellar.child(parent)
    await cellar.do(park(parent, "child"))
    pieces = [await exported(cellar, parent.run), await exported(cellar, child)]
    for data in pieces if first == "parent" else reversed(pieces):
        await brought(other, data)
    held = await other.hold(child)
    await other.do(complete_run(held, '"done"'))
    assert (await other.run(parent.run)).status is RunStatus.PENDING
    step = await other.store.get_step(parent.run, "child")
    assert step is not None
    assert step.output == Payload(b'"done"')


@pytest.mark.parametrize("first", ["parent", "child"])
async def test_a_child_that_ended_after_its_parent_was_exported(cellar: Cellar, other: Cellar, first: str) -> None:
    parent = await cellar.running()
    child = await cellar.child(parent)
    await cellar.do(park(parent, "child"))
    old_parent = await exported(cellar, parent.run)
    await cellar.do(complete_run(await cellar.hold(child), '"done"'))
    pieces = [old_parent, await exported(cellar, child)]
    for data in pieces if first == "parent" else reversed(pieces):
        await brought(other, data)
    assert (await other.run(parent.run)).status is RunStatus.PENDING


async def test_who_was_to_begin_after_a_run_that_is_not_here_begins(cellar: Cellar, other: Cellar) -> None:
    blocker = await cellar.start()
    blocked = await cellar.start(blocked_by=blocker.run_id)
    await brought(other, await exported(cellar, blocked))
    assert (await other.run(blocked)).status is RunStatus.PENDING


# --- refusals ----------------------------------------------------------------------------------------------------------------


async def test_the_same_again_is_already_there(cellar: Cellar, other: Cellar) -> None:
    await populate(cellar)
    for record in await all_runs(cellar):
        data = await exported(cellar, record.run)
        assert not await brought(other, data)
        assert await brought(other, data), f"the second time {record} is another"
        assert await brought(cellar, data), f"where it came from {record} is another"


async def test_other_content_is_refused(cellar: Cellar, other: Cellar) -> None:
    holding = await cellar.running()
    data = await exported(cellar, holding.run)
    await brought(other, data)
    await cellar.done(holding, "more")
    with pytest.raises(AlreadyExists, match="with other content"):
        await brought(other, await exported(cellar, holding.run))
    assert not await brought(other, data, namespace="elsewhere"), "no id of one namespace is in the way of another"


async def test_a_family_moves_to_another_namespace_of_the_same_store(cellar: Cellar) -> None:
    """Under other ids, by which its members find each other, whoever comes first."""
    holding = await cellar.running()
    child = await cellar.child(holding)
    the(Parked, await cellar.do(park(holding)))
    files = {run: await exported(cellar, run) for run in (holding.run, child)}
    for namespace, order in (("first", (holding.run, child)), ("second", (child, holding.run))):
        moved = [RunKey(namespace, made_of(namespace, run.run_id)) for run in (holding.run, child)]
        for run in order:
            assert not await brought(cellar, files[run], namespace)
            assert await brought(cellar, files[run], namespace), "the second time it is another"
        assert (await cellar.steps(moved[0]))["child"].child_run_id == moved[1].run_id
        assert (await cellar.run(moved[1])).parent_run_id == moved[0].run_id
        held_child = await cellar.hold(moved[1])
        closed = the(RunClosed, await cellar.do(complete_run(held_child)))
        assert [stirred.run for stirred in closed.stirred] == [moved[0]]
    assert (await cellar.run(holding.run)).status is RunStatus.SLEEPING


async def test_ids_from_before_there_were_marks(cellar: Cellar) -> None:
    """Whoever has one keeps it; what comes in anew has an id of its namespace, and finds relatives by the ids that they have."""
    old = [RunKey("default", uuid7(cellar.now, number)) for number in (1, 2)]
    assert not any(is_of("default", run.run_id) for run in old)
    await cellar.do(msgspec.structs.replace(cellar.start_command("old"), run=old[0]))
    holding = await cellar.hold(old[0])
    command = cellar.child_command(holding, "child")
    start = msgspec.structs.replace(command.start, run=old[1])
    the(ChildStarted, await cellar.do(msgspec.structs.replace(command, start=start)))
    the(Parked, await cellar.do(park(holding)))
    data = await exported(cellar, old[0])
    assert await brought(cellar, data), "it is here, and the same"
    await cellar.terminate(old[0])
    await cellar.store.cascade(cellar.now, cellar.now + 1, 10)
    await cellar.store.delete_runs("default", [old[0].run_id], until=2**62)
    assert not await brought(cellar, data)
    new = RunKey("default", made_of("default", old[0].run_id))
    assert (await cellar.steps(new))["child"].child_run_id == old[1].run_id


async def test_an_active_workflow_id_is_refused_without_a_trace(cellar: Cellar, other: Cellar) -> None:
    run = await cellar.start("order-1")
    await other.start("order-1")
    data = await exported(cellar, run)
    with pytest.raises(AlreadyExists, match="order-1"):
        await brought(other, data)
    assert await other.store.get_run("default", run_id=run.run_id) is None
    assert not await brought(other, data, namespace="elsewhere"), "there it is free"


async def test_a_request_made_here_too_is_refused(cellar: Cellar, other: Cellar) -> None:
    run = await cellar.start("one", request_id="same")
    await other.start("two", request_id="same")
    with pytest.raises(AlreadyExists, match="same start"):
        await brought(other, await exported(cellar, run))


async def test_unknown_and_foreign_runs_are_not_found(cellar: Cellar) -> None:
    run = await cellar.start()
    for missing in (
        RunKey("other", run.run_id),
        RunKey("default", cellar.ids.run_id(cellar.now)),
        RunKey("default", "x"),
    ):
        with pytest.raises(NotFound):
            await exported(cellar, missing)


async def test_a_damaged_file_leaves_no_trace(cellar: Cellar) -> None:
    holding = await cellar.running(input=payload("1"))
    for number in range(5):
        await cellar.done(holding, f"s{number}")
    await cellar.signal(holding.run, "early")
    await cellar.do(complete_run(holding))
    lines = (await exported(cellar, holding.run)).splitlines(keepends=True)
    await cellar.store.delete_runs("default", [holding.run.run_id], until=2**62)
    damages: list[tuple[list[bytes], str]] = [
        (lines[:-1], "cut off"),
        (lines[:-2] + lines[-1:], "lines are missing"),
        (lines[1:], "line 1 is no run"),
        ([lines[0], *lines[2:]], "lines are missing"),
        ([*lines[:2], lines[1], *lines[2:]], "line 3.*was there before"),
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
            await brought(cellar, b"".join(damaged))
        assert await all_runs(cellar) == []
    while await cellar.store.purge_leftovers(100):
        pass
    assert not await brought(cellar, b"".join(lines)), "what the others left is in the way"


async def test_two_at_once_are_one(cellar: Cellar) -> None:
    key = RunKey("default", run := cellar.ids.run_id(cellar.now))
    assert await cellar.store.begin_import(run, "one", cellar.now, cellar.now - 1) == "open"
    assert await cellar.store.begin_import(run, "two", cellar.now, cellar.now - 1) == "busy"
    assert await cellar.store.begin_import(run, "one", cellar.now, cellar.now - 1) == "open", "a repeat"
    cellar.clock.advance(s=100)
    assert await cellar.store.begin_import(run, "two", cellar.now, cellar.now - 1) == "open", "the first has gone away"
    assert await cellar.store.stage_import(key, "one", [], cellar.now) is None
    await cellar.store.abandon_imports(token="two")
    assert await cellar.store.stage_import(key, "two", [], cellar.now) is None


async def test_what_is_half_in_cannot_be_seen(cellar: Cellar, other: Cellar) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "a")
    image = await cellar.store.export_run(holding.run)
    parts = await cellar.store.export_steps(holding.run, 0, 10)
    assert image is not None
    assert await other.store.begin_import(holding.run.run_id, "t", other.now, 0) == "open"
    assert await other.store.stage_import(holding.run, "t", parts, other.now) == 1
    assert await all_runs(other) == []
    assert await other.store.list_steps(holding.run, name=None, after_begun_seq=0, limit=9, payloads=True) is None
    with pytest.raises(Unavailable):
        await brought(other, await exported(cellar, holding.run))

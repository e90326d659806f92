"""The context of a run is the same for everybody, whether it is stored beside the input or by itself."""

import sqlite3
from contextlib import closing

import pytest

from kagzi.core.records import ClaimedRun, Payload, RunKey
from kagzi.core.run.outcomes import Started
from kagzi.core.transfers.images import read_data
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .places import Place, connected
from .verbs import StoreHarness, complete_run, continue_as, fail_run, leased, payload, the

SMALL, LARGE = b'{"tenant":"acme"}', b'{"tenant":"%s"}' % (b"a" * 70_000)
TO_OWN_ROW = (
    """INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, created_at, finished_at, output, output_meta)
    SELECT run_id, '$context', '$context', 101, status, 0, created_at, finished_at, input, input_meta FROM steps
    WHERE step_id = '$input' AND input IS NOT NULL""",
    "UPDATE steps SET input = NULL, input_meta = NULL WHERE step_id = '$input'",
)
"""To the form of databases in which every context has its own row."""


@pytest.mark.parametrize("argument", [None, payload('"in"'), Payload(b"", {"k": "in"})])
@pytest.mark.parametrize(
    "context", [Payload(SMALL), Payload(SMALL, {"k": "v"}), Payload(b"", {"k": "v"}), Payload(LARGE, {"k": "v"}), None]
)
@pytest.mark.parametrize("many", [False, True])
async def test_a_run_has_the_context_that_it_was_started_with(
    harness: StoreHarness, argument: Payload | None, context: Payload | None, many: bool
) -> None:
    runs = await harness.start_many(3 if many else 1, input=argument, context=context)
    for run in runs:
        record = await harness.run(run)
        assert (record.input, record.context) == (argument, context)
    claims = await harness.claim()
    assert [(each.input, each.context) for each in claims] == [(argument, context)] * len(runs)
    await follow(harness, claims[0], context)


async def follow(harness: StoreHarness, claimed: ClaimedRun, context: Payload | None) -> None:
    """Retry, fork and successor have the same context; an export contains it."""
    run = claimed.run
    await harness.do(fail_run(leased(claimed)))
    await harness.retry(run)
    again = await harness.claim_one()
    assert (again.run, again.input, again.context) == (run, claimed.input, context)
    fork = the(Started, await harness.fork(run, "", workflow_id="fork"))
    assert (await harness.run(RunKey(run.namespace, fork.run_id))).context == context
    assert (await harness.claim_one()).context == context
    image = await harness.store.export_run(run)
    assert image is not None
    assert read_data(image.context, "context") == context
    await harness.do(continue_as(leased(again), harness.ids.run_id(harness.now)))
    successor = await harness.claim_one()
    assert (successor.run != run, successor.context) == (True, context)
    await harness.do(continue_as(leased(successor), harness.ids.run_id(harness.now), context=Payload(b'{"new":1}')))
    last = await harness.claim_one()
    assert last.context == Payload(b'{"new":1}')
    await harness.do(complete_run(leased(last)))


@pytest.mark.parametrize(("context", "rows"), [(SMALL, 1), (LARGE, 2)])
async def test_a_small_context_needs_no_row(
    durable_place: Place, clock: FakeClock, ids: CountingIds, context: bytes, rows: int
) -> None:
    harness = StoreHarness(await durable_place.open(), clock, ids)
    await harness.start(input=payload("in"), context=Payload(context))
    assert await _execute(durable_place, "SELECT count(*) FROM steps") == rows
    await harness.start_many(2, input=payload("in"), context=Payload(context))
    assert await _execute(durable_place, "SELECT count(*) FROM steps") == 3 * rows


async def test_a_context_that_has_its_own_row_is_found_as_well(
    durable_place: Place, clock: FakeClock, ids: CountingIds
) -> None:
    harness = StoreHarness(await durable_place.open(), clock, ids)
    context = Payload(SMALL, {"k": "v"})
    run = await harness.start(input=payload("in"), context=context)
    for statement in TO_OWN_ROW:
        await _execute(durable_place, statement)
    assert await _execute(durable_place, "SELECT count(*) FROM steps") == 2
    assert (await harness.run(run)).context == context
    claimed = await harness.claim_one()
    assert (claimed.input, claimed.context) == (payload("in"), context)
    await follow(harness, claimed, context)


async def _execute(place: Place, statement: str) -> object:
    """The first value of the result, directly in the database."""
    if place.name == "postgres":
        async with connected(place.address) as connection:
            return await connection.fetchval(statement)
    with closing(sqlite3.connect(place.address)) as database, database:
        row = database.execute(statement).fetchone()
        return None if row is None else row[0]

"""Operations on many runs: kept once, worked on by one server, and counted once whatever is repeated."""

import asyncio
from typing import get_args

import msgspec

from kagzi.core.bulk import Batch, BulkAction, BulkOperation, BulkProgress
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import RunFilter
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S
from kagzi.store.protocol import Store

from .places import Place
from .verbs import StoreHarness

CLAIM_US = 5 * US_PER_S
WHERE = RunFilter(statuses=(RunStatus.FAILED,), labels={"team": "a"}, workflow_types=("x", "y"), created_after=7)


def operation(harness: StoreHarness, **options: object) -> BulkOperation:
    default = BulkOperation(
        operation_id=harness.ids.run_id(harness.now),
        namespace="default",
        action="cancel",
        where=WHERE,
        reason="the spring cleaning",
        request_id=harness.ids.token(),
        created_at=harness.now,
    )
    return msgspec.structs.replace(default, **options)


async def add(harness: StoreHarness, **options: object) -> BulkOperation:
    return await harness.store.add_bulk(operation(harness, **options))


async def claim(harness: StoreHarness, server_id: str = "one", store: Store | None = None) -> BulkOperation | None:
    return await (store or harness.store).claim_bulk(server_id, harness.now, harness.now + CLAIM_US)


def batch_of(harness: StoreHarness, count: int, *, last: bool = False) -> Batch:
    return Batch(tuple((harness.now, harness.ids.run_id(harness.now)) for _ in range(count)), last=last)


async def plan(harness: StoreHarness, kept: BulkOperation, batch: Batch, server_id: str = "one") -> bool:
    return await harness.store.plan_bulk(kept.operation_id, server_id, batch, harness.now + CLAIM_US)


async def advance(
    harness: StoreHarness,
    kept: BulkOperation,
    batch: Batch,
    *,
    failed: int = 0,
    error: str = "",
    server_id: str = "one",
) -> bool:
    progress = BulkProgress(
        operation_id=kept.operation_id,
        cursor=Cursor(*batch.runs[-1]) if batch.runs else None,
        done=len(batch.runs) - failed,
        failed=failed,
        last_error=error,
        finished=batch.last,
    )
    return await harness.store.advance_bulk(progress, server_id, harness.now, harness.now + CLAIM_US)


async def get(harness: StoreHarness, kept: BulkOperation) -> BulkOperation:
    stored = await harness.store.get_bulk("default", kept.operation_id)
    assert stored is not None
    return stored


async def test_it_is_kept_as_it_was_added(harness: StoreHarness) -> None:
    added = operation(harness)
    assert await harness.store.add_bulk(added) == added
    assert await harness.store.get_bulk("default", added.operation_id) == added


async def test_every_action_can_be_kept(harness: StoreHarness) -> None:
    for action in get_args(BulkAction):
        assert (await add(harness, action=action)).action == action


async def test_a_repeated_request_is_the_same_operation(harness: StoreHarness) -> None:
    first = await add(harness, request_id="r-1")
    again = await add(harness, request_id="r-1", action="delete")
    assert again == first
    other = await add(harness, request_id="r-1", namespace="other")
    assert other.operation_id != first.operation_id


async def test_namespaces_see_nothing_of_each_other(harness: StoreHarness) -> None:
    mine = await add(harness)
    assert await harness.store.get_bulk("other", mine.operation_id) is None
    assert await harness.store.stop_bulk("other", mine.operation_id, harness.now) is None
    assert (await harness.store.list_bulk("other", None, 10)).rows == ()
    assert await get(harness, mine) == mine


async def test_lists_newest_first_in_both_directions(harness: StoreHarness) -> None:
    kept: list[BulkOperation] = []
    for _ in range(5):
        kept.append(await add(harness))
        harness.clock.advance(s=1)
    newest = list(reversed(kept))
    first = await harness.store.list_bulk("default", None, 2)
    assert (list(first.rows), first.has_more) == (newest[:2], True)
    place = Cursor(newest[1].created_at, newest[1].operation_id)
    second = await harness.store.list_bulk("default", place, 10)
    assert (list(second.rows), second.has_more) == (newest[2:], False)
    back = Cursor(newest[3].created_at, newest[3].operation_id, "prev")
    before = await harness.store.list_bulk("default", back, 2)
    assert (list(before.rows), before.has_more) == (newest[1:3], True)


async def test_one_server_works_on_one_operation(harness: StoreHarness, second_store: Store) -> None:
    kept = await add(harness)
    claims = await asyncio.gather(claim(harness, "one"), claim(harness, "two", second_store))
    assert [claimed for claimed in claims if claimed is not None] == [kept]
    winner = "one" if claims[0] is not None else "two"
    assert await claim(harness, winner) == kept, "whoever has it goes on with it"


async def test_another_takes_over_when_the_claim_has_run_out(harness: StoreHarness) -> None:
    kept = await add(harness)
    assert await claim(harness, "one") == kept
    assert await claim(harness, "two") is None
    harness.clock.advance(us=CLAIM_US)
    assert await claim(harness, "two") == kept
    assert not await plan(harness, kept, batch_of(harness, 1), "one")
    assert await plan(harness, kept, batch_of(harness, 1), "two")


async def test_a_kept_claim_lasts(harness: StoreHarness) -> None:
    kept = await add(harness)
    await claim(harness, "one")
    harness.clock.advance(us=CLAIM_US - 1)
    assert await harness.store.keep_bulk(kept.operation_id, "one", harness.now + CLAIM_US)
    assert not await harness.store.keep_bulk(kept.operation_id, "two", harness.now + CLAIM_US)
    harness.clock.advance(us=1)
    assert await claim(harness, "two") is None


async def test_operations_take_turns(harness: StoreHarness) -> None:
    first, second = await add(harness), await add(harness)
    turns: list[str] = []
    for _ in range(4):
        claimed = await claim(harness)
        assert claimed is not None
        turns.append(claimed.operation_id)
        harness.clock.advance(us=1)
    assert set(turns[:2]) == {first.operation_id, second.operation_id}
    assert turns[2:] == turns[:2]


async def test_progress(harness: StoreHarness) -> None:
    kept = await add(harness)
    await claim(harness)
    one, two = batch_of(harness, 3), batch_of(harness, 2, last=True)
    assert await plan(harness, kept, one)
    assert (await get(harness, kept)).batch == one
    assert await advance(harness, kept, one, failed=1, error="run x: no")
    half = await get(harness, kept)
    assert (half.matched, half.done, half.failed, half.last_error) == (3, 2, 1, "run x: no")
    assert (half.cursor, half.batch, half.finished_at) == (Cursor(*one.runs[-1]), None, None)
    await plan(harness, kept, two)
    await advance(harness, kept, two)
    whole = await get(harness, kept)
    assert (whole.matched, whole.done, whole.failed, whole.last_error) == (5, 4, 1, "run x: no")
    assert (whole.finished_at, whole.stopped) == (harness.now, False)
    assert await claim(harness) is None


async def test_a_batch_is_counted_once(harness: StoreHarness) -> None:
    """Its worker was thought dead, another one did it again; both come to tell."""
    kept = await add(harness)
    await claim(harness, "one")
    batch = batch_of(harness, 3)
    await plan(harness, kept, batch, "one")
    harness.clock.advance(us=CLAIM_US)
    taken = await claim(harness, "two")
    assert taken is not None
    assert taken.batch == batch, "it begins with what was not finished"
    assert not await advance(harness, kept, batch, server_id="one")
    assert await advance(harness, kept, batch, server_id="two")
    assert not await advance(harness, kept, batch, server_id="two")
    assert (await get(harness, kept)).matched == 3


async def test_an_empty_batch_finishes_it(harness: StoreHarness) -> None:
    kept = await add(harness)
    await claim(harness)
    batch = batch_of(harness, 0, last=True)
    await plan(harness, kept, batch)
    assert await advance(harness, kept, batch)
    stored = await get(harness, kept)
    assert (stored.matched, stored.cursor, stored.finished_at) == (0, None, harness.now)


async def test_stopped_where_it_is(harness: StoreHarness) -> None:
    kept = await add(harness)
    await claim(harness)
    batch = batch_of(harness, 2)
    await plan(harness, kept, batch)
    stopped = await harness.store.stop_bulk("default", kept.operation_id, harness.now)
    assert stopped is not None
    assert (stopped.stopped, stopped.finished_at) == (True, harness.now)
    assert await advance(harness, kept, batch), "what was being done counts"
    assert not await plan(harness, kept, batch_of(harness, 1))
    assert await claim(harness) is None
    stored = await get(harness, kept)
    assert (stored.matched, stored.stopped, stored.finished_at) == (2, True, stopped.finished_at)


async def test_one_that_has_finished_is_not_stopped(harness: StoreHarness) -> None:
    kept = await add(harness)
    await claim(harness)
    batch = batch_of(harness, 0, last=True)
    await plan(harness, kept, batch)
    await advance(harness, kept, batch)
    at = harness.now
    harness.clock.advance(s=1)
    stored = await harness.store.stop_bulk("default", kept.operation_id, harness.now)
    assert stored is not None
    assert (stored.stopped, stored.finished_at) == (False, at)


async def test_finished_ones_are_forgotten_after_a_time(harness: StoreHarness) -> None:
    old, open_one = await add(harness), await add(harness)
    await harness.store.stop_bulk("default", old.operation_id, harness.now)
    harness.clock.advance(s=10)
    young = await add(harness)
    await harness.store.stop_bulk("default", young.operation_id, harness.now)
    assert await harness.store.forget_bulk(harness.now, 1)
    assert not await harness.store.forget_bulk(harness.now, 1)
    left = await harness.store.list_bulk("default", None, 10)
    assert [one.operation_id for one in left.rows] == [young.operation_id, open_one.operation_id]


async def test_a_poll_lists_unfinished_ones(harness: StoreHarness) -> None:
    assert not (await harness.store.poll([], harness.now)).bulk
    kept = await add(harness)
    assert (await harness.store.poll([], harness.now)).bulk
    await harness.store.stop_bulk("default", kept.operation_id, harness.now)
    assert not (await harness.store.poll([], harness.now)).bulk


async def test_it_outlives_a_restart(durable_place: Place, clock: object, ids: object) -> None:
    before = StoreHarness(await durable_place.open(), clock, ids)  # type: ignore[arg-type]
    kept = await add(before)
    await claim(before)
    batch = batch_of(before, 2)
    await plan(before, kept, batch)
    await before.store.close()
    after = StoreHarness(await durable_place.open(), before.clock, before.ids)
    after.clock.advance(us=CLAIM_US)
    claimed = await claim(after, "another")
    assert claimed is not None
    assert (claimed.operation_id, claimed.batch) == (kept.operation_id, batch)

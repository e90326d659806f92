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
from .verbs import Cellar

CLAIM_US = 5 * US_PER_S
WHERE = RunFilter(statuses=(RunStatus.FAILED,), labels={"team": "a"}, workflow_types=("x", "y"), created_after=7)


def operation(cellar: Cellar, **options: object) -> BulkOperation:
    given = BulkOperation(
        operation_id=cellar.ids.run_id(cellar.now),
        namespace="default",
        action="cancel",
        where=WHERE,
        reason="the spring cleaning",
        request_id=cellar.ids.token(),
        created_at=cellar.now,
    )
    return msgspec.structs.replace(given, **options)


async def add(cellar: Cellar, **options: object) -> BulkOperation:
    return await cellar.store.add_bulk(operation(cellar, **options))


async def claim(cellar: Cellar, server_id: str = "one", store: Store | None = None) -> BulkOperation | None:
    return await (store or cellar.store).claim_bulk(server_id, cellar.now, cellar.now + CLAIM_US)


def batch_of(cellar: Cellar, count: int, *, last: bool = False) -> Batch:
    return Batch(tuple((cellar.now, cellar.ids.run_id(cellar.now)) for _ in range(count)), last=last)


async def plan(cellar: Cellar, kept: BulkOperation, batch: Batch, server_id: str = "one") -> bool:
    return await cellar.store.plan_bulk(kept.operation_id, server_id, batch, cellar.now + CLAIM_US)


async def advance(
    cellar: Cellar, kept: BulkOperation, batch: Batch, *, failed: int = 0, error: str = "", server_id: str = "one"
) -> bool:
    progress = BulkProgress(
        operation_id=kept.operation_id,
        cursor=Cursor(*batch.runs[-1]) if batch.runs else None,
        done=len(batch.runs) - failed,
        failed=failed,
        last_error=error,
        finished=batch.last,
    )
    return await cellar.store.advance_bulk(progress, server_id, cellar.now, cellar.now + CLAIM_US)


async def get(cellar: Cellar, kept: BulkOperation) -> BulkOperation:
    found = await cellar.store.get_bulk("default", kept.operation_id)
    assert found is not None
    return found


async def test_it_is_kept_as_it_was_given(cellar: Cellar) -> None:
    given = operation(cellar)
    assert await cellar.store.add_bulk(given) == given
    assert await cellar.store.get_bulk("default", given.operation_id) == given


async def test_every_action_can_be_kept(cellar: Cellar) -> None:
    for action in get_args(BulkAction):
        assert (await add(cellar, action=action)).action == action


async def test_a_repeated_request_is_the_same_operation(cellar: Cellar) -> None:
    first = await add(cellar, request_id="r-1")
    again = await add(cellar, request_id="r-1", action="delete")
    assert again == first
    other = await add(cellar, request_id="r-1", namespace="other")
    assert other.operation_id != first.operation_id


async def test_namespaces_see_nothing_of_each_other(cellar: Cellar) -> None:
    mine = await add(cellar)
    assert await cellar.store.get_bulk("other", mine.operation_id) is None
    assert await cellar.store.stop_bulk("other", mine.operation_id, cellar.now) is None
    assert (await cellar.store.list_bulk("other", None, 10)).rows == ()
    assert await get(cellar, mine) == mine


async def test_lists_newest_first_in_both_directions(cellar: Cellar) -> None:
    kept: list[BulkOperation] = []
    for _ in range(5):
        kept.append(await add(cellar))
        cellar.clock.advance(s=1)
    newest = list(reversed(kept))
    first = await cellar.store.list_bulk("default", None, 2)
    assert (list(first.rows), first.has_more) == (newest[:2], True)
    place = Cursor(newest[1].created_at, newest[1].operation_id)
    second = await cellar.store.list_bulk("default", place, 10)
    assert (list(second.rows), second.has_more) == (newest[2:], False)
    back = Cursor(newest[3].created_at, newest[3].operation_id, "prev")
    before = await cellar.store.list_bulk("default", back, 2)
    assert (list(before.rows), before.has_more) == (newest[1:3], True)


async def test_one_server_works_on_one_operation(cellar: Cellar, second_store: Store) -> None:
    kept = await add(cellar)
    claims = await asyncio.gather(claim(cellar, "one"), claim(cellar, "two", second_store))
    assert [found for found in claims if found is not None] == [kept]
    winner = "one" if claims[0] is not None else "two"
    assert await claim(cellar, winner) == kept, "whoever has it goes on with it"


async def test_another_takes_over_when_the_claim_has_run_out(cellar: Cellar) -> None:
    kept = await add(cellar)
    assert await claim(cellar, "one") == kept
    assert await claim(cellar, "two") is None
    cellar.clock.advance(us=CLAIM_US)
    assert await claim(cellar, "two") == kept
    assert not await plan(cellar, kept, batch_of(cellar, 1), "one")
    assert await plan(cellar, kept, batch_of(cellar, 1), "two")


async def test_a_kept_claim_lasts(cellar: Cellar) -> None:
    kept = await add(cellar)
    await claim(cellar, "one")
    cellar.clock.advance(us=CLAIM_US - 1)
    assert await cellar.store.keep_bulk(kept.operation_id, "one", cellar.now + CLAIM_US)
    assert not await cellar.store.keep_bulk(kept.operation_id, "two", cellar.now + CLAIM_US)
    cellar.clock.advance(us=1)
    assert await claim(cellar, "two") is None


async def test_operations_take_turns(cellar: Cellar) -> None:
    first, second = await add(cellar), await add(cellar)
    turns: list[str] = []
    for _ in range(4):
        found = await claim(cellar)
        assert found is not None
        turns.append(found.operation_id)
        cellar.clock.advance(us=1)
    assert set(turns[:2]) == {first.operation_id, second.operation_id}
    assert turns[2:] == turns[:2]


async def test_progress(cellar: Cellar) -> None:
    kept = await add(cellar)
    await claim(cellar)
    one, two = batch_of(cellar, 3), batch_of(cellar, 2, last=True)
    assert await plan(cellar, kept, one)
    assert (await get(cellar, kept)).batch == one
    assert await advance(cellar, kept, one, failed=1, error="run x: no")
    half = await get(cellar, kept)
    assert (half.matched, half.done, half.failed, half.last_error) == (3, 2, 1, "run x: no")
    assert (half.cursor, half.batch, half.finished_at) == (Cursor(*one.runs[-1]), None, None)
    await plan(cellar, kept, two)
    await advance(cellar, kept, two)
    whole = await get(cellar, kept)
    assert (whole.matched, whole.done, whole.failed, whole.last_error) == (5, 4, 1, "run x: no")
    assert (whole.finished_at, whole.stopped) == (cellar.now, False)
    assert await claim(cellar) is None


async def test_a_batch_is_counted_once(cellar: Cellar) -> None:
    """Its worker was thought dead, another one did it again; both come to tell."""
    kept = await add(cellar)
    await claim(cellar, "one")
    batch = batch_of(cellar, 3)
    await plan(cellar, kept, batch, "one")
    cellar.clock.advance(us=CLAIM_US)
    taken = await claim(cellar, "two")
    assert taken is not None
    assert taken.batch == batch, "it begins with what was not finished"
    assert not await advance(cellar, kept, batch, server_id="one")
    assert await advance(cellar, kept, batch, server_id="two")
    assert not await advance(cellar, kept, batch, server_id="two")
    assert (await get(cellar, kept)).matched == 3


async def test_an_empty_batch_ends_it(cellar: Cellar) -> None:
    kept = await add(cellar)
    await claim(cellar)
    batch = batch_of(cellar, 0, last=True)
    await plan(cellar, kept, batch)
    assert await advance(cellar, kept, batch)
    found = await get(cellar, kept)
    assert (found.matched, found.cursor, found.finished_at) == (0, None, cellar.now)


async def test_stopped_where_it_is(cellar: Cellar) -> None:
    kept = await add(cellar)
    await claim(cellar)
    batch = batch_of(cellar, 2)
    await plan(cellar, kept, batch)
    stopped = await cellar.store.stop_bulk("default", kept.operation_id, cellar.now)
    assert stopped is not None
    assert (stopped.stopped, stopped.finished_at) == (True, cellar.now)
    assert await advance(cellar, kept, batch), "what was being done counts"
    assert not await plan(cellar, kept, batch_of(cellar, 1))
    assert await claim(cellar) is None
    found = await get(cellar, kept)
    assert (found.matched, found.stopped, found.finished_at) == (2, True, stopped.finished_at)


async def test_one_that_has_finished_is_not_stopped(cellar: Cellar) -> None:
    kept = await add(cellar)
    await claim(cellar)
    batch = batch_of(cellar, 0, last=True)
    await plan(cellar, kept, batch)
    await advance(cellar, kept, batch)
    at = cellar.now
    cellar.clock.advance(s=1)
    found = await cellar.store.stop_bulk("default", kept.operation_id, cellar.now)
    assert found is not None
    assert (found.stopped, found.finished_at) == (False, at)


async def test_finished_ones_are_forgotten_after_a_time(cellar: Cellar) -> None:
    old, open_one = await add(cellar), await add(cellar)
    await cellar.store.stop_bulk("default", old.operation_id, cellar.now)
    cellar.clock.advance(s=10)
    young = await add(cellar)
    await cellar.store.stop_bulk("default", young.operation_id, cellar.now)
    assert await cellar.store.forget_bulk(cellar.now, 1)
    assert not await cellar.store.forget_bulk(cellar.now, 1)
    left = await cellar.store.list_bulk("default", None, 10)
    assert [one.operation_id for one in left.rows] == [young.operation_id, open_one.operation_id]


async def test_a_look_tells_of_unfinished_ones(cellar: Cellar) -> None:
    assert not (await cellar.store.look([], cellar.now)).bulk
    kept = await add(cellar)
    assert (await cellar.store.look([], cellar.now)).bulk
    await cellar.store.stop_bulk("default", kept.operation_id, cellar.now)
    assert not (await cellar.store.look([], cellar.now)).bulk


async def test_it_outlives_a_restart(durable_place: Place, clock: object, ids: object) -> None:
    before = Cellar(await durable_place.open(), clock, ids)  # type: ignore[arg-type]
    kept = await add(before)
    await claim(before)
    batch = batch_of(before, 2)
    await plan(before, kept, batch)
    await before.store.close()
    after = Cellar(await durable_place.open(), before.clock, before.ids)
    after.clock.advance(us=CLAIM_US)
    found = await claim(after, "another")
    assert found is not None
    assert (found.operation_id, found.batch) == (kept.operation_id, batch)

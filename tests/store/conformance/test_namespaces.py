"""Namespaces see nothing of each other (P7): a foreign id answers like one that does not exist, on every verb."""

import pytest

from kagzi.core.records import Held, NamespaceRecord, RunFilter, RunKey
from kagzi.core.run.outcomes import RunNotFound
from kagzi.core.states import WorkerStatus

from .verbs import Cellar, begin, complete_run, payload

OURS, THEIRS = "ours", "theirs"


async def test_a_foreign_run_id_is_unknown_to_every_verb(cellar: Cellar) -> None:
    holding = await cellar.running(workflow_id="order-1", namespace=OURS, labels={"team": "x"}, input=payload("secret"))
    await cellar.done(holding, "a")
    await cellar.start(namespace=THEIRS)
    foreign = RunKey(THEIRS, holding.run.run_id)
    ghost = Held(foreign, holding.lease)
    before = await cellar.picture(holding.run)
    store = cellar.store

    assert await cellar.write(begin(ghost, "b"), complete_run(ghost)) == [RunNotFound(), RunNotFound()]
    assert await store.history(foreign, holding.lease, 0) is None
    assert (await cellar.renew(ghost)).lost == (ghost,)
    await store.cut([ghost], cellar.now)
    assert list(await store.release([ghost], cellar.now)) == []
    assert await store.get_run(THEIRS, run_id=foreign.run_id) is None
    assert await store.get_run(THEIRS, workflow_id="order-1") is None
    assert list(await store.ends_of([foreign])) == [None]
    assert await cellar.cancel(foreign) is None
    assert await store.list_steps(foreign, name=None, after_begun_seq=0, limit=10, payloads=True) is None
    assert await store.get_step(foreign, "a") is None

    assert await cellar.picture(holding.run) == before
    assert (await cellar.fire()).lost == ()


async def test_lists_counts_and_claims_stay_within_their_namespace(cellar: Cellar) -> None:
    ours = await cellar.start("order-1", namespace=OURS, labels={"team": "x"})
    theirs = await cellar.start("order-1", namespace=THEIRS, labels={"team": "x"})
    for namespace, run in ((OURS, ours), (THEIRS, theirs)):
        for where in (RunFilter(), RunFilter(labels={"team": "x"}), RunFilter(workflow_id="order-1")):
            page = await cellar.store.list_runs(namespace, where, None, 10)
            assert [row.run for row in page.rows] == [run]
            assert await cellar.store.count_runs(namespace, where, 10) == 1
    (claimed,) = await cellar.claim(namespace=OURS)
    assert claimed.run == ours


async def test_names_that_look_joined_are_kept_apart(cellar: Cellar) -> None:
    # Keys joined with ':' were ambiguous once.
    one = await cellar.start("c", namespace="a:b", workflow_type="t")
    other = await cellar.start("b:c", namespace="a", workflow_type="t")
    assert await cellar.store.get_run("a", workflow_id="c") is None
    assert await cellar.store.get_run("a:b", workflow_id="b:c") is None
    assert (await cellar.claim(workflow_type="t", namespace="a"))[0].run == other
    assert (await cellar.claim(workflow_type="t", namespace="a:b"))[0].run == one


async def test_a_foreign_worker_is_unknown(cellar: Cellar) -> None:
    await cellar.register("worker-1", namespace=OURS)
    await cellar.register("worker-2", namespace=THEIRS)
    store = cellar.store
    assert await store.get_worker(THEIRS, "worker-1") is None
    assert not await store.set_worker_status(THEIRS, "worker-1", WorkerStatus.OFFLINE, cellar.now)
    assert await store.worker_left(THEIRS, "worker-1", cellar.now, hand_back=True) is None
    page = await store.list_workers(THEIRS, workflow_type=None, status=None, cursor=None, limit=10)
    assert [worker.worker_id for worker in page.rows] == ["worker-2"]
    worker = await store.get_worker(OURS, "worker-1")
    assert worker is not None
    assert worker.status == WorkerStatus.ONLINE


async def test_a_worker_that_leaves_hands_back_only_the_runs_of_its_namespace(cellar: Cellar) -> None:
    ours = await cellar.running(namespace=OURS)
    theirs = await cellar.running(namespace=THEIRS)
    await cellar.register("worker-1", namespace=OURS)
    assert list(await cellar.store.worker_left(OURS, "worker-1", cellar.now, hand_back=True) or ()) == [(OURS, "hello")]
    assert (await cellar.run(ours.run)).status == "pending"
    assert (await cellar.run(theirs.run)).status == "running"


async def test_a_namespace_is_kept_with_its_limits_and_replaced_whole(cellar: Cellar) -> None:
    full = NamespaceRecord(
        namespace="full",
        enabled=False,
        open_runs_limit=1,
        running_runs_limit=2,
        starts_per_second_limit=2.5,
        stored_bytes_limit=10**12,
        sessions_limit=4,
        schedules_limit=5,
    )
    await cellar.store.put_namespace(full, cellar.now)
    created_at = cellar.now
    found = await cellar.store.get_namespace("full")
    assert found is not None
    assert (found.enabled, found.open_runs_limit, found.running_runs_limit) == (False, 1, 2)
    assert (found.starts_per_second_limit, found.stored_bytes_limit) == (2.5, 10**12)
    assert (found.sessions_limit, found.schedules_limit) == (4, 5)
    cellar.clock.advance(s=1)
    await cellar.store.put_namespace(NamespaceRecord(namespace="full"), cellar.now)
    found = await cellar.store.get_namespace("full")
    assert found is not None
    assert (found.enabled, found.open_runs_limit, found.stored_bytes_limit) == (True, None, None)
    assert found.created_at == created_at
    assert await cellar.store.get_namespace("nobody") is None


@pytest.mark.parametrize("limit", [0, 1])
async def test_the_limit_of_one_namespace_is_not_that_of_another(cellar: Cellar, limit: int) -> None:
    await cellar.store.put_namespace(NamespaceRecord(namespace=OURS, open_runs_limit=limit), cellar.now)
    outcomes = await cellar.write(
        *(cellar.start_command(namespace=namespace) for namespace in (OURS, THEIRS, OURS, THEIRS))
    )
    started = [type(outcome).__name__ for outcome in outcomes]
    assert started[1] == started[3] == "Started"
    assert [started[0], started[2]] == ["Started" if limit else "Refused", "Refused"]

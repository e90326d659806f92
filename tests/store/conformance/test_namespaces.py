"""Namespaces see nothing of each other (P7): a foreign id answers like one that does not exist, on every verb."""

import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.records import NamespaceRecord, RunFilter, RunKey, RunLease
from kagzi.core.run.outcomes import RunNotFound
from kagzi.core.states import WorkerStatus

from .verbs import StoreHarness, begin, complete_run, payload

OURS, THEIRS = "ours", "theirs"


async def test_a_foreign_run_id_is_unknown_to_every_verb(harness: StoreHarness) -> None:
    holding = await harness.running(
        workflow_id="order-1", namespace=OURS, labels={"team": "x"}, input=payload("secret")
    )
    await harness.done(holding, "a")
    await harness.start(namespace=THEIRS)
    foreign = RunKey(THEIRS, holding.run.run_id)
    ghost = RunLease(foreign, holding.lease)
    before = await harness.picture(holding.run)
    store = harness.store

    assert await harness.write(begin(ghost, "b"), complete_run(ghost)) == [RunNotFound(), RunNotFound()]
    assert await store.history(foreign, holding.lease, 0) is None
    assert (await harness.renew(ghost)).lost == (ghost,)
    await store.shorten_leases([ghost], harness.now)
    assert await store.release([ghost], harness.now) is NO_EFFECTS
    assert await store.get_run(THEIRS, run_id=foreign.run_id) is None
    assert await store.get_run(THEIRS, workflow_id="order-1") is None
    assert list(await store.endings_of([foreign])) == [None]
    assert await harness.cancel(foreign) is None
    assert await store.list_steps(foreign, name=None, after_begun_seq=0, limit=10, payloads=True) is None
    assert await store.get_step(foreign, "a") is None

    assert await harness.picture(holding.run) == before
    assert (await harness.fire()).lost == ()


async def test_lists_counts_and_claims_stay_within_their_namespace(harness: StoreHarness) -> None:
    ours = await harness.start("order-1", namespace=OURS, labels={"team": "x"})
    theirs = await harness.start("order-1", namespace=THEIRS, labels={"team": "x"})
    for namespace, run in ((OURS, ours), (THEIRS, theirs)):
        for where in (RunFilter(), RunFilter(labels={"team": "x"}), RunFilter(workflow_id="order-1")):
            page = await harness.store.list_runs(namespace, where, None, 10)
            assert [row.run for row in page.rows] == [run]
            assert await harness.store.count_runs(namespace, where, 10) == 1
    (claimed,) = await harness.claim(namespace=OURS)
    assert claimed.run == ours


async def test_names_that_seem_joined_are_kept_apart(harness: StoreHarness) -> None:
    # Keys joined with ':' were ambiguous once.
    one = await harness.start("c", namespace="a:b", workflow_type="t")
    other = await harness.start("b:c", namespace="a", workflow_type="t")
    assert await harness.store.get_run("a", workflow_id="c") is None
    assert await harness.store.get_run("a:b", workflow_id="b:c") is None
    assert (await harness.claim(workflow_type="t", namespace="a"))[0].run == other
    assert (await harness.claim(workflow_type="t", namespace="a:b"))[0].run == one


async def test_a_foreign_worker_is_unknown(harness: StoreHarness) -> None:
    await harness.register("worker-1", namespace=OURS)
    await harness.register("worker-2", namespace=THEIRS)
    store = harness.store
    assert await store.get_worker(THEIRS, "worker-1") is None
    assert not await store.set_worker_status(THEIRS, "worker-1", WorkerStatus.OFFLINE, harness.now)
    assert await store.worker_left(THEIRS, "worker-1", harness.now, hand_back=True) == (False, NO_EFFECTS)
    page = await store.list_workers(THEIRS, workflow_type=None, status=None, cursor=None, limit=10)
    assert [worker.worker_id for worker in page.rows] == ["worker-2"]
    worker = await store.get_worker(OURS, "worker-1")
    assert worker is not None
    assert worker.status == WorkerStatus.ONLINE


async def test_a_worker_that_leaves_hands_back_only_the_runs_of_its_namespace(harness: StoreHarness) -> None:
    ours = await harness.running(namespace=OURS)
    theirs = await harness.running(namespace=THEIRS)
    await harness.register("worker-1", namespace=OURS)
    _, effects = await harness.store.worker_left(OURS, "worker-1", harness.now, hand_back=True)
    assert effects.pending == ((OURS, "hello"),)
    assert (await harness.run(ours.run)).status == "pending"
    assert (await harness.run(theirs.run)).status == "running"


async def test_a_namespace_is_kept_with_its_limits_and_replaced_whole(harness: StoreHarness) -> None:
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
    await harness.store.put_namespace(full, harness.now)
    created_at = harness.now
    record = await harness.store.get_namespace("full")
    assert record is not None
    assert (record.enabled, record.open_runs_limit, record.running_runs_limit) == (False, 1, 2)
    assert (record.starts_per_second_limit, record.stored_bytes_limit) == (2.5, 10**12)
    assert (record.sessions_limit, record.schedules_limit) == (4, 5)
    harness.clock.advance(s=1)
    await harness.store.put_namespace(NamespaceRecord(namespace="full"), harness.now)
    record = await harness.store.get_namespace("full")
    assert record is not None
    assert (record.enabled, record.open_runs_limit, record.stored_bytes_limit) == (True, None, None)
    assert record.created_at == created_at
    assert await harness.store.get_namespace("nobody") is None


@pytest.mark.parametrize("limit", [0, 1])
async def test_the_limit_of_one_namespace_is_not_that_of_another(harness: StoreHarness, limit: int) -> None:
    await harness.store.put_namespace(NamespaceRecord(namespace=OURS, open_runs_limit=limit), harness.now)
    outcomes = await harness.write(
        *(harness.start_command(namespace=namespace) for namespace in (OURS, THEIRS, OURS, THEIRS))
    )
    started = [type(outcome).__name__ for outcome in outcomes]
    assert started[1] == started[3] == "Started"
    assert [started[0], started[2]] == ["Started" if limit else "Refused", "Refused"]

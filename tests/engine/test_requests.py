"""What is refused at the door names the field, the limit and the remedy, and changes nothing; lists go on from page to
page."""

from typing import Any

import pytest

from kagzi.core import limits
from kagzi.core.error_details import ErrorDetail
from kagzi.core.errors import InvalidArgument, KagziError, NotFound, PreconditionFailed
from kagzi.core.records import Lease, NamespaceRecord, Payload, RunFilter, RunKey, Served
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import BeginSleep, FailRun
from kagzi.core.run.outcomes import Existing, Started
from kagzi.core.schedules.scheduled_time import METADATA_KEY
from kagzi.core.states import RunStatus
from kagzi.engine import Engine, PageAsk
from kagzi.engine.checks.bounds import bounded_error
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import MovableClock, TroubledStore, complete, start, until, worker

NOBODY = "01890000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"workflow_type": ""}, "workflow_type"),
        ({"workflow_type": "a\0b"}, "workflow_type"),
        ({"workflow_type": "x" * 257}, "256"),
        ({"workflow_type": "ü" * 129}, "256"),
        ({"workflow_id": "line\nbreak"}, "workflow_id"),
        ({"workflow_id": "\ud800"}, "workflow_id"),
        ({"request_id": "x" * 300}, "request_id"),
        ({"namespace": ""}, "namespace"),
        ({"task_queue": "x" * 257}, "task_queue"),
        ({"input": Payload(b"x" * (limits.PAYLOAD_BYTES + 1))}, str(limits.PAYLOAD_BYTES)),
        ({"context": Payload(b"", {str(n): "" for n in range(65)})}, "64"),
        ({"context": Payload(b"", {METADATA_KEY: "1"})}, "reserved for runs that a schedule starts"),
        ({"labels": {str(n): "" for n in range(65)}}, "labels"),
        ({"labels": {"key": "x" * 257}}, "256"),
        ({"priority": 101}, "-100..100"),
        ({"start_at": 5, "delay_us": 5}, "delay"),
        ({"delay_us": -1}, "delay"),
        ({"start_at": 1 << 62}, "start_at"),
        ({"deadline_at": 1}, "deadline_at"),
        ({"retry": RetryPolicy(maximum_attempts=0)}, "maximum_attempts"),
        ({"retry": RetryPolicy(jitter=2)}, "jitter"),
        ({"retry": RetryPolicy(backoff_coefficient=float("nan"))}, "backoff_coefficient"),
    ],
)
async def test_a_bad_start_is_refused_and_nothing_is_written(
    engine: Engine, store: TroubledStore, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidArgument, match=named):
        await engine.runs.start(start(**fields))
    assert store.calls["write"] == 0


async def test_a_refused_start_among_many_leaves_its_neighbours_alone(engine: Engine) -> None:
    answers = await engine.runs.start_many(
        [start(workflow_id="a"), start(""), start(workflow_id="a"), start(workflow_id="b", namespace="another")]
    )
    assert isinstance(answers[0], Started)
    assert isinstance(answers[1], KagziError)
    assert isinstance(answers[2], Existing)
    assert answers[2].run_id == answers[0].run_id
    assert isinstance(answers[3], Started)
    assert (await engine.runs.get("another", workflow_id="b")).status is RunStatus.PENDING
    with pytest.raises(InvalidArgument, match="1000"):
        await engine.runs.start_many([start()] * 1_001)


async def test_a_run_is_named_by_one_id(engine: Engine) -> None:
    with pytest.raises(InvalidArgument, match="neither"):
        await engine.runs.get("default")
    with pytest.raises(InvalidArgument, match="both"):
        await engine.runs.get("default", run_id=NOBODY, workflow_id="x")
    for run_id in (NOBODY, NOBODY.upper().replace("0", "A"), "x" * 1_000):
        with pytest.raises(NotFound):
            await engine.runs.get("default", run_id=run_id)
        with pytest.raises(NotFound):
            await engine.control.cancel("default", run_id=run_id)
        with pytest.raises(NotFound):
            await engine.steps.list("default", run_id, name=None, page=PageAsk(), payloads=False)
        with pytest.raises(NotFound):
            await engine.tasks.submit(
                FailRun(run=RunKey("default", run_id), lease=Lease(1, 1), error=ErrorDetail(message="x"))
            )


async def test_another_namespace_sees_nothing(engine: Engine) -> None:
    started = await engine.runs.start(start(workflow_id="mine"))
    for name in ({"run_id": started.run_id}, {"workflow_id": "mine"}):
        with pytest.raises(NotFound):
            await engine.runs.get("another", **name)
        with pytest.raises(NotFound):
            await engine.control.cancel("another", **name)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"served": ()}, "workflow_types"),
        ({"served": (Served("a", ""),)}, "version"),
        ({"served": (Served("a", "1"), Served("a", "1"))}, "twice"),
        ({"max_concurrent": 0}, "1..10000"),
        ({"max_concurrent": 10_001}, "max_concurrent"),
        ({"labels": {"": "x"}}, "labels"),
    ],
)
async def test_a_bad_worker_is_refused(engine: Engine, fields: dict[str, Any], named: str) -> None:
    import msgspec

    with pytest.raises(InvalidArgument, match=named):
        await engine.workers.register(msgspec.structs.replace(worker("hello"), **fields))


async def test_a_poll_is_for_registered_workers_and_types(engine: Engine) -> None:
    with pytest.raises(NotFound, match="worker"):
        await engine.tasks.poll("default", "nobody", (), max_tasks=1, wait_ms=0)
    registered = await engine.workers.register(worker("hello"))
    with pytest.raises(InvalidArgument, match="'other' was not registered"):
        await engine.tasks.poll("default", registered.worker_id, ("other",), max_tasks=1, wait_ms=0)
    with pytest.raises(InvalidArgument, match=r"1\.\.100"):
        await engine.tasks.poll("default", registered.worker_id, (), max_tasks=101, wait_ms=0)
    with pytest.raises(InvalidArgument, match="60000"):
        await engine.tasks.poll("default", registered.worker_id, (), max_tasks=1, wait_ms=60_001)
    await engine.workers.deregister("default", registered.worker_id, drain=False)
    with pytest.raises(PreconditionFailed, match="Register"):
        await engine.tasks.poll("default", registered.worker_id, (), max_tasks=1, wait_ms=0)
    with pytest.raises(NotFound):
        await engine.workers.deregister("default", "nobody", drain=True)


async def test_unary_operations_raise_their_refusals(engine: Engine) -> None:
    registered = await engine.workers.register(worker("hello"))
    await engine.runs.start(start())
    (run,) = await engine.tasks.poll("default", registered.worker_id, (), max_tasks=1, wait_ms=0)
    with pytest.raises(InvalidArgument, match="exactly one"):
        await engine.tasks.submit(BeginSleep(run=run.run, lease=run.lease, step_id="s", name="s"))
    assert (await engine.tasks.history(run.run, run.lease, 0)).steps == ()
    with pytest.raises(InvalidArgument, match="known_seq"):
        await engine.tasks.history(run.run, run.lease, 0, -1)
    await engine.tasks.submit(complete(run))
    with pytest.raises(KagziError) as lost:
        await engine.tasks.history(run.run, run.lease, 0)
    assert lost.value.code == "lease_lost"


async def test_a_unary_heartbeat_renews_and_returns_notices(engine: Engine) -> None:
    beat = {"active_count": 1, "completed_delta": 0, "failed_delta": 0}
    unknown = await engine.workers.heartbeat("default", "nobody", leased=(), **beat)
    assert not unknown.accepted
    registered = await engine.workers.register(worker("hello"))
    started = await engine.runs.start(start())
    (run,) = await engine.tasks.poll("default", registered.worker_id, (), max_tasks=1, wait_ms=0)
    await engine.control.cancel("default", run_id=started.run_id)
    from kagzi.core.records import RunLease

    stale = RunLease(run.run, Lease(9, 9))
    answer = await engine.workers.heartbeat(
        "default", registered.worker_id, leased=(RunLease(run.run, run.lease), stale), **beat
    )
    assert answer.accepted
    assert answer.lost == (stale,)
    assert answer.cancel_requested == (run.run,)


async def test_lists_lead_from_page_to_page_and_back(engine: Engine, clock: MovableClock) -> None:
    for number in range(7):
        await engine.runs.start(start(workflow_id=f"run-{number}"))
    names: list[str] = []
    page = await engine.runs.list("default", RunFilter(), PageAsk(size=3, count=True))
    assert (page.total, page.total_is_capped, page.prev_token) == (7, False, "")
    first = [record.workflow_id for record in page.rows]
    names.extend(first)
    second = await engine.runs.list("default", RunFilter(), PageAsk(size=3, token=page.next_token))
    names.extend(record.workflow_id for record in second.rows)
    third = await engine.runs.list("default", RunFilter(), PageAsk(size=3, token=second.next_token))
    names.extend(record.workflow_id for record in third.rows)
    assert names == [f"run-{number}" for number in reversed(range(7))]
    assert not third.has_more
    back = await engine.runs.list("default", RunFilter(), PageAsk(size=3, token=second.prev_token))
    assert [record.workflow_id for record in back.rows] == first
    for other in (RunFilter(workflow_id="x"), RunFilter(labels={"a": "b"})):
        with pytest.raises(InvalidArgument, match="page_token"):
            await engine.runs.list("default", other, PageAsk(token=page.next_token))
    with pytest.raises(InvalidArgument, match="page_token"):
        await engine.runs.list("another", RunFilter(), PageAsk(token=page.next_token))
    with pytest.raises(InvalidArgument, match=r"1\.\.1000"):
        await engine.runs.list("default", RunFilter(), PageAsk(size=1_001))


async def test_lists_by_end_lead_from_page_to_page_and_back(engine: Engine, clock: MovableClock) -> None:
    runs = [(await engine.runs.start(start(workflow_id=f"run-{number}"))).run_id for number in range(5)]
    ended = [runs[place] for place in (3, 0, 4, 1)]
    for run_id in ended:
        await engine.control.terminate("default", run_id=run_id)
    first = await engine.runs.list("default", RunFilter(), PageAsk(size=3), order="ended")
    second = await engine.runs.list("default", RunFilter(), PageAsk(size=3, token=first.next_token), order="ended")
    assert [record.run.run_id for record in (*first.rows, *second.rows)] == ended[::-1]
    assert (first.has_more, second.has_more) == (True, False)
    back = await engine.runs.list("default", RunFilter(), PageAsk(size=3, token=second.prev_token), order="ended")
    assert back.rows == first.rows
    with pytest.raises(InvalidArgument, match="page_token"):
        await engine.runs.list("default", RunFilter(), PageAsk(size=3, token=first.next_token))
    assert second.rows[0].finished_at is not None
    where = RunFilter(ended_after=second.rows[0].finished_at + 1)
    by_filter = await engine.runs.list("default", where, PageAsk(count=True))
    assert ([record.run.run_id for record in by_filter.rows], by_filter.total) == (ended[:0:-1], 3)
    with pytest.raises(InvalidArgument, match="order"):
        await engine.runs.list("default", where, PageAsk(), order="created")


async def test_a_search_has_one_page_and_is_for_reading_only(engine: Engine, clock: MovableClock) -> None:
    for number in range(5):
        await engine.runs.start(start(workflow_id=f"run-{number}"))
    where = RunFilter(id_prefix="run-")
    page = await engine.runs.list("default", where, PageAsk(size=3, count=True))
    assert (len(page.rows), page.has_more, page.next_token, page.prev_token, page.total) == (3, True, "", "", 5)
    assert await engine.runs.count("default", where) == (5, False)
    with pytest.raises(InvalidArgument, match="one page"):
        await engine.runs.list("default", where, PageAsk(token="something"))
    with pytest.raises(InvalidArgument, match="id_prefix"):
        await engine.runs.list("default", where, PageAsk(), order="ended")
    with pytest.raises(InvalidArgument, match="id_prefix"):
        await engine.bulk.start("default", "cancel", where)
    with pytest.raises(InvalidArgument, match="id_prefix"):
        await engine.runs.list("default", RunFilter(id_prefix="x" * 257), PageAsk())


async def test_what_ended_in_a_span_is_changed_by_end(engine: Engine, clock: MovableClock) -> None:
    runs = [(await engine.runs.start(start(workflow_id=f"run-{number}"))).run_id for number in range(4)]
    for run_id in reversed(runs):
        await engine.control.terminate("default", run_id=run_id)
    finished_at = [(await engine.runs.get("default", run_id=run_id)).finished_at for run_id in runs]
    operation = await engine.bulk.start("default", "delete", RunFilter(ended_after=finished_at[2]))

    async def finished() -> bool:
        return (await engine.bulk.get("default", operation.operation_id)).finished_at is not None

    await until(finished)
    left = await engine.runs.list("default", RunFilter(), PageAsk())
    assert [record.run.run_id for record in left.rows] == [runs[3]], "only what ended before"


async def test_strict_namespaces_must_exist(make_engine: MakeEngine, store: TroubledStore, clock: MovableClock) -> None:
    engine = make_engine(strict_namespaces=True)
    await engine.start()
    with pytest.raises(NotFound, match="strict-namespaces"):
        await engine.runs.start(start(namespace="new"))
    with pytest.raises(NotFound):
        await engine.workers.register(worker("hello", namespace="new"))
    await store.put_namespace(NamespaceRecord(namespace="new"), clock.now())
    assert isinstance(await engine.runs.start(start(namespace="new")), Started)


def test_an_error_too_large_is_truncated_and_one_that_fits_is_left_alone() -> None:
    small = ErrorDetail(message="broken", type="ValueError", traceback="line\n" * 3, cause=ErrorDetail(message="why"))
    assert bounded_error(small) is small
    large = ErrorDetail(message="ä" * 100_000, traceback="\0" * 10, metadata={"k": "v" * 100_000})
    shortened = bounded_error(large)
    assert len(shortened.message.encode()) <= limits.ERROR_MESSAGE_BYTES
    assert shortened.message.endswith("[cut]")
    assert "\0" not in shortened.traceback
    chain = ErrorDetail(message="0")
    for number in range(1, 50):
        chain = ErrorDetail(message=str(number), cause=chain)
    depth, error = 0, bounded_error(chain)
    while error.cause is not None:
        depth, error = depth + 1, error.cause
    assert depth < limits.ERROR_CAUSES

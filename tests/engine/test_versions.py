"""New runs are pinned to a version when they start, from what is remembered of their type; a change is heard of
everywhere."""

import asyncio
from collections import Counter

import pytest

from kagzi.core.errors import NotFound, PreconditionFailed
from kagzi.core.records import Payload, RunKey
from kagzi.core.run.commands import ContinueAsNew, SendSignal, StartChild, StartRun
from kagzi.core.run.outcomes import StepFailed
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine.services.paging import PageAsk
from kagzi.store.protocol import TypeKey
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import TIMEOUT_S, Exchange, RecordingOutlet, TroubledStore, start, until, worker
from tests.support.timeouts import LOADED_MACHINE_S


async def version_of(engine: Engine, version: str = "", **options: object) -> str | None:
    started = await engine.runs.start(start(version=version, **options))
    return (await engine.runs.get("default", run_id=started.run_id)).version


async def register(engine: Engine, *served: str) -> None:
    await engine.workers.register(worker(*served))


async def test_a_run_is_pinned_to_what_it_asks_for_else_to_the_highest(engine: Engine) -> None:
    assert await version_of(engine) is None  # nobody knows one: its first worker decides
    await register(engine, "hello@9", "hello@10")
    assert await version_of(engine) == "10"
    assert await version_of(engine, "9") == "9"
    assert await version_of(engine, "77") == "77"


async def test_a_new_version_takes_over_at_once_where_it_registers(engine: Engine) -> None:
    await register(engine, "hello@1")
    assert await version_of(engine) == "1"
    await register(engine, "hello@2")
    assert await version_of(engine) == "2"


async def test_the_default_that_was_set_counts(engine: Engine) -> None:
    await register(engine, "hello@1", "hello@2")
    record = await engine.versions.set_default("default", "hello", "1")
    assert (record.version, record.is_default, record.is_set) == ("1", True, True)
    assert await version_of(engine) == "1"
    record = await engine.versions.set_default("default", "hello", "")
    assert (record.version, record.is_default, record.is_set) == ("2", True, False)
    assert await version_of(engine) == "2"


async def test_a_deprecated_version_takes_no_new_runs(engine: Engine) -> None:
    await register(engine, "hello@1", "hello@2")
    await engine.runs.start(start(version="1", workflow_id="there"))
    await engine.versions.deprecate("default", "hello", "1", undo=False)
    with pytest.raises(PreconditionFailed, match="version 1 of hello is deprecated"):
        await engine.runs.start(start(version="1"))
    (refused, fine) = await engine.runs.start_many([start(version="1"), start()])
    assert isinstance(refused, PreconditionFailed)
    assert not isinstance(fine, Exception)
    # What is there is answered all the same.
    again = await engine.runs.start(start(version="1", workflow_id="there"))
    assert again.workflow_id == "there"
    await engine.versions.deprecate("default", "hello", "1", undo=True)
    assert await version_of(engine, "1") == "1"


async def test_a_batch_of_which_every_start_is_refused_is_answered(engine: Engine) -> None:
    await register(engine, "hello@1", "hello@2")
    await engine.versions.deprecate("default", "hello", "1", undo=False)
    answers = await asyncio.wait_for(engine.runs.start_many([start(version="1"), start(version="1")]), TIMEOUT_S)
    assert [type(answer) for answer in answers] == [PreconditionFailed] * 2


async def test_with_nothing_but_deprecated_versions_nothing_starts(engine: Engine) -> None:
    await register(engine, "hello@1")
    await engine.versions.deprecate("default", "hello", "1", undo=False)
    with pytest.raises(PreconditionFailed, match="every version of hello is deprecated"):
        await engine.runs.start(start())
    signal = SendSignal(name="go", payload=Payload(b"1"), request_id="s1")
    with pytest.raises(PreconditionFailed, match="every version of hello is deprecated"):
        await engine.runs.signal_with_start(start(workflow_id="new"), signal)


async def test_refusals(engine: Engine) -> None:
    await register(engine, "hello@1", "hello@2")
    await engine.versions.set_default("default", "hello", "1")
    with pytest.raises(PreconditionFailed, match="set as the default"):
        await engine.versions.deprecate("default", "hello", "1", undo=False)
    await engine.versions.deprecate("default", "hello", "2", undo=False)
    with pytest.raises(PreconditionFailed, match="cannot be the default"):
        await engine.versions.set_default("default", "hello", "2")
    for namespace, workflow_type, version in (
        ("default", "hello", "9"),
        ("default", "nothing", "1"),
        ("elsewhere", "hello", "1"),
    ):
        with pytest.raises(NotFound):
            await engine.versions.set_default(namespace, workflow_type, version)
        with pytest.raises(NotFound):
            await engine.versions.deprecate(namespace, workflow_type, version, undo=False)


async def test_starts_do_not_ask_the_store_each_time(engine: Engine, store: TroubledStore) -> None:
    await register(engine, "hello@1")
    await engine.runs.start(start())
    before = store.calls["versions_of"]
    await asyncio.gather(*(engine.runs.start(start()) for _ in range(100)))
    await engine.runs.start_many([start() for _ in range(100)])
    assert store.calls["versions_of"] == before


async def test_those_who_ask_at_the_same_time_share_one_question(engine: Engine, store: TroubledStore) -> None:
    await register(engine, "hello@1")
    before = store.calls["versions_of"]
    await asyncio.gather(*(engine.runs.start(start()) for _ in range(50)))
    assert store.calls["versions_of"] == before + 1


async def test_another_server_is_notified_of_a_change(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    await register(here, "hello@1", "hello@2")
    assert await version_of(there) == "2"
    there.versions._remembered_s = 600.0  # only what it is told can help it
    assert await version_of(there) == "2"
    await here.versions.set_default("default", "hello", "1")

    async def notified() -> bool:
        return await version_of(there) == "1"

    await until(notified)


async def test_without_notifications_a_server_is_behind_for_a_second_at_most(make_engine: MakeEngine) -> None:
    here, there = (
        make_engine(Exchange().bus(), poll_interval_ms=600_000) for _ in range(2)
    )  # who cannot hear each other
    await here.start()
    await there.start()
    await register(here, "hello@1", "hello@2")
    assert await version_of(there) == "2"
    await here.versions.set_default("default", "hello", "1")
    async with asyncio.timeout(LOADED_MACHINE_S):  # time is the subject
        while await version_of(there) != "1":  # noqa: ASYNC110  nobody tells it
            await asyncio.sleep(0.05)


async def test_children_and_continued_runs_get_theirs_the_same_way(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello@1", "child@1", "child@2"), (), outlet)
    await engine.versions.set_default("default", "child", "1")
    await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    leased = {"run": run.run, "lease": run.lease}
    child = StartRun(run=RunKey("default", ""), workflow_id="kid", workflow_type="child", request_id="", input=None)
    await session.submit([(1, StartChild(**leased, step_id="c", name="c", start=child))])
    await outlet.answer_to(1)
    assert (await engine.runs.get("default", workflow_id="kid")).version == "1"

    await engine.versions.deprecate("default", "child", "2", undo=False)
    request = StartRun(
        run=RunKey("default", ""), workflow_id="k2", workflow_type="child", request_id="", input=None, version="2"
    )
    await session.submit([(2, StartChild(**leased, step_id="d", name="d", start=request))])
    refused = await outlet.answer_to(2)
    assert isinstance(refused, StepFailed)
    assert "deprecated" in refused.error.message

    await engine.workers.register(worker("hello@2"))
    await session.submit([(3, ContinueAsNew(**leased, new_run_id="", input=Payload(b"1")))])
    await outlet.answer_to(3)
    successor = await engine.runs.get("default", workflow_id=run.workflow_id)
    assert (successor.version, successor.status) == ("2", RunStatus.PENDING)


async def test_a_list_of_versions(engine: Engine) -> None:
    await register(engine, "hello@1", "other@5")
    await register(engine, "hello@2")
    await engine.runs.start(start(version="1"))
    page = await engine.versions.list("default", "hello", PageAsk())
    records = {record.version: record for record in page.rows}
    assert {version: record.is_default for version, record in records.items()} == {"1": False, "2": True}
    assert (records["1"].open_runs, records["1"].workers, records["2"].workers) == (1, 1, 1)
    everything = await engine.versions.list("default", "", PageAsk(size=2))
    assert len(everything.rows) == 2
    assert everything.next_token
    rest = await engine.versions.list("default", "", PageAsk(size=2, token=everything.next_token))
    assert len(rest.rows) == 1
    back = await engine.versions.list("default", "", PageAsk(size=2, token=rest.prev_token))
    assert back.rows == everything.rows


async def test_a_batch_asks_once_for_each_type_and_version(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await register(engine, "hello@1", "hello@2", "other@7")
    await engine.versions.deprecate("default", "hello", "1", undo=False)
    questions: list[tuple[str, str]] = []
    pin, check = engine.runs._versions.pin, engine.runs._namespaces.check

    async def counted_pin(key: TypeKey, requested: str) -> str:
        questions.append((key.workflow_type, requested))
        return await pin(key, requested)

    async def counted_check(namespace: str) -> None:
        questions.append(("namespace", namespace))
        await check(namespace)

    monkeypatch.setattr(engine.runs._versions, "pin", counted_pin)
    monkeypatch.setattr(engine.runs._namespaces, "check", counted_check)
    requests = [start(kind, version=version) for kind, version in [("hello", ""), ("other", ""), ("hello", "1")] * 3]
    answers = await engine.runs.start_many(requests)
    assert [isinstance(answer, PreconditionFailed) for answer in answers] == [False, False, True] * 3
    # What was refused is looked up again: whether the run is there already depends on the start.
    assert Counter(questions) == {("namespace", "default"): 1, ("hello", ""): 1, ("other", ""): 1, ("hello", "1"): 3}

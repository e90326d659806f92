"""Names that no worker serves are said, and only those: where somebody starts a run of one, to the parent of such a
child, and in the log if they go on waiting."""

import pytest

from kagzi.core.records import RunKey
from kagzi.core.run.commands import StartChild, StartRun
from kagzi.engine import Engine, Named
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import Exchange, RecordingOutlet, TroubledStore, leased, start, until, worker

WAITS = "It waits."


async def warned(engine: Engine, workflow_type: str, version: str = "") -> str:
    return await engine.served.warning(Named("default", workflow_type, version), WAITS)


async def test_a_name_that_nobody_serves_is_reported_with_the_one_that_was_meant(engine: Engine) -> None:
    await engine.sessions.open(worker("type-flow", "order"), (), RecordingOutlet())
    assert await warned(engine, "typo-flow") == "No worker serves 'typo-flow'. Did you mean 'type-flow'? It waits."


async def test_a_version_that_nobody_serves_is_reported_with_those_that_are(engine: Engine) -> None:
    await engine.sessions.open(worker("order"), (), RecordingOutlet())
    assert (
        await warned(engine, "order", "7")
        == "No worker serves version 7 of 'order': those connected serve 1. It waits."
    )


async def test_what_is_served_costs_no_read(engine: Engine, store: TroubledStore) -> None:
    await engine.sessions.open(worker("order"), (), RecordingOutlet())
    before = store.calls["list_workers"]
    assert [await warned(engine, "order") for _ in range(100)] == [""] * 100
    assert store.calls["list_workers"] == before


async def test_names_that_nobody_serves_cost_few_reads(engine: Engine, store: TroubledStore) -> None:
    before = store.calls["list_workers"]
    warnings = await engine.served.warnings([Named("default", f"none-{n}") for n in range(100)], WAITS)
    assert all(warnings)
    assert store.calls["list_workers"] - before == 1
    for n in range(100):
        await warned(engine, f"other-{n}")
    assert store.calls["list_workers"] - before <= 20  # then it is not known: a worker may have come since


async def test_a_store_that_is_away_warns_of_nothing(engine: Engine, store: TroubledStore) -> None:
    store.away = True
    assert await warned(engine, "none") == ""


async def test_the_parent_of_a_child_that_nobody_serves_is_warned(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("parent"), (), outlet)
    await engine.runs.start(start("parent"))
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])
    child = StartRun(
        run=RunKey("default", ""), workflow_id="", workflow_type="chidl", request_id="", on_conflict="fail"
    )
    await session.submit([(1, StartChild(run=run.run, lease=run.lease, step_id="chidl", name="chidl", start=child))])
    await outlet.until(lambda: outlet.notices_received)
    (notice,) = outlet.notices_received
    assert (notice.kind, notice.leased) == ("warning", leased(run))
    assert (
        notice.reason == "No worker serves 'chidl'. Those connected serve parent. The child run waits until one does."
    )


async def test_runs_that_keep_waiting_for_a_worker_are_logged_once(
    make_engine: MakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(poll_interval_ms=50)
    engine.served.logged_after_s = 0.1
    await engine.start()
    await engine.sessions.open(worker("order"), (), RecordingOutlet())

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if "No worker serves" in record.getMessage()]

    async def logged() -> bool:
        return len(lines()) >= 2

    await engine.runs.start(start("ordre"))
    await engine.runs.start(start("none", workflow_id="second"))
    await until(logged)
    polled_at = engine._timers._poll_at

    async def has_polled_again() -> bool:
        return engine._timers._poll_at > polled_at

    await until(has_polled_again)
    of_none, of_ordre = sorted(lines())
    assert of_none.startswith(
        "No worker serves 'none'. Those connected serve order. Its runs in namespace 'default' have waited for 0 s"
    )
    assert of_ordre.startswith("No worker serves 'ordre'. Did you mean 'order'? Its runs")


async def test_what_a_worker_of_another_server_serves_is_not_reported_as_unserved(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    assert await warned(here, "order") == "No worker serves 'order': none is connected. It waits."
    await there.sessions.open(worker("order"), (), RecordingOutlet())
    assert await warned(here, "order") == ""  # at once, whatever was seen a moment ago

"""A run that does not fit its code is adopted to one build: workers of that build take it, on whatever server."""

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.errors import InvalidArgument, NotFound, PreconditionFailed
from kagzi.core.records import ClaimedRun, WorkerRecord
from kagzi.core.run.commands import PauseDiverged
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine.services.paging import PageAsk
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import Exchange, RecordingOutlet, start, until, worker

PROBLEM = ErrorDetail(code=ErrorCode.PRECONDITION_FAILED, kind=ErrorKind.NONDETERMINISM, message="line 3")


def of_build(build_id: str, slots: int = 10) -> WorkerRecord:
    return msgspec.structs.replace(worker("hello", slots=slots), build_id=build_id)


async def stuck(engine: Engine, outlet: RecordingOutlet) -> ClaimedRun:
    """A run that a worker of build `old` took and that did not fit. The worker stays."""
    session = await engine.sessions.open(of_build("old", slots=100), (), outlet)
    await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    await session.submit([(1, PauseDiverged(run=run.run, lease=run.lease, problem=PROBLEM, build_id="old"))])
    await outlet.answer_to(1)
    return run


async def settled(engine: Engine) -> None:
    async def nothing_pending() -> bool:
        return not engine._matcher._pending

    await until(nothing_pending)


@pytest.mark.parametrize("servers", [1, 2])
async def test_the_worker_of_that_build_takes_it(make_engine: MakeEngine, servers: int) -> None:
    """Also one that is connected to another server, which hears of it at once; and the many free slots of the others
    do not hide it."""
    exchange = Exchange()
    here, *there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(servers))
    for engine in (here, *there):
        await engine.start()
    old, repaired = RecordingOutlet(), RecordingOutlet()
    await (there or [here])[0].sessions.open(of_build("repaired", slots=1), (), repaired)
    run = await stuck(here, old)  # it has more free slots
    for engine in (here, *there):
        await settled(engine)
    status = await here.control.adopt("default", run_id=run.run.run_id, build_id="repaired", reason="hotfix")
    assert status in (RunStatus.PENDING, RunStatus.RUNNING)
    (taken,) = await repaired.until_received(1)
    assert taken.run == run.run
    assert len(old.claimed_runs) == 1
    audit = await here.audit.list("default", PageAsk())
    assert [(row.action, row.subject, row.details) for row in audit.rows] == [
        ("run.adopt", run.run.run_id, {"build_id": "repaired", "reason": "hotfix"})
    ]


async def test_explain_says_that_nobody_has_that_build(engine: Engine) -> None:
    run = (await stuck(engine, RecordingOutlet())).run
    explained = await engine.explanations.explain("default", run_id=run.run_id)
    assert f"kagzi adopt {run.run_id} --code" in explained.remedy
    await engine.control.adopt("default", run_id=run.run_id, build_id="repaired")
    explained = await engine.explanations.explain("default", run_id=run.run_id)
    assert explained.reason == "no_worker_for_build"
    assert explained.sentence == (
        "It waits for a worker of build repaired, to which it was adopted: those connected are of build old."
    )
    assert f"kagzi adopt {run.run_id} --any-build" in explained.remedy
    assert explained.facts["builds_connected"] == "old"


async def test_adopting_is_checked(engine: Engine) -> None:
    run = (await stuck(engine, RecordingOutlet())).run
    with pytest.raises(InvalidArgument, match="build_id"):
        await engine.control.adopt("default", run_id=run.run_id, build_id="x" * 300)
    with pytest.raises(NotFound):
        await engine.control.adopt("elsewhere", run_id=run.run_id, build_id="repaired")
    await engine.control.terminate("default", run_id=run.run_id)
    with pytest.raises(PreconditionFailed, match="kagzi fork"):
        await engine.control.adopt("default", run_id=run.run_id, build_id="repaired")
    assert not (await engine.audit.list("default", PageAsk())).rows

"""Starts and signals that the workers of a type would refuse are refused where they are sent; in doubt they are not."""

import asyncio
import time

import pytest

from kagzi.core.errors import InvalidArgument, NotFound
from kagzi.core.limits import SCHEMA_BYTES, SCHEMA_EARLIER_US
from kagzi.core.records import Payload, RunFilter, RunKey, Served
from kagzi.core.run.commands import SendSignal, SignalReplacement, StartChild, StartRun
from kagzi.core.run.outcomes import ChildStarted, StepFailed
from kagzi.core.schedules.schedule import ScheduleSpec
from kagzi.core.workflow_types.schema_check import Misfit, Visits
from kagzi.core.workflow_types.schemas import TypeSchemas
from kagzi.engine import Engine
from kagzi.engine.checks import schemas as checks
from kagzi.engine.checks.schemas import TypeChecks
from kagzi.engine.services import runs as runs_module
from tests.engine.fakes import MovableClock, RecordingOutlet, TroubledStore, leased, start, worker

NUMBER = TypeSchemas(
    description="Counts.", input_schema='{"type":"integer"}', signal_schemas={"go": '{"type":"integer"}'}
)
TEXT = TypeSchemas(input_schema='{"type":"string"}', signal_schemas={"go": '{"type":"string"}'})


async def register(engine: Engine, schemas: TypeSchemas | None, *served: str) -> None:
    record = worker(*(served or ("hello@1",)))
    await engine.workers.register(record, {} if schemas is None else dict.fromkeys(record.served, schemas))


def payload(data: str) -> Payload:
    return Payload(data.encode())


def sent(name: str, value: Payload) -> SendSignal:
    return SendSignal(name=name, payload=value, request_id="")


async def runs(engine: Engine) -> int:
    return (await engine.runs.count("default", RunFilter()))[0]


async def test_a_start_that_does_not_fit_is_refused_before_anything_is_changed(engine: Engine) -> None:
    await register(engine, NUMBER)
    with pytest.raises(InvalidArgument, match="input: expected a whole number, got string") as refused:
        await engine.runs.start(start(input=payload('"x"')))
    assert refused.value.field == "input"
    with pytest.raises(InvalidArgument, match="got null"):
        await engine.runs.start(start())
    one, other = await engine.runs.start_many([start(input=payload("[]")), start(input=payload("1"))])
    assert isinstance(one, InvalidArgument)
    assert not isinstance(other, InvalidArgument)
    signal = sent("go", payload("1"))
    with pytest.raises(InvalidArgument, match="got boolean"):
        await engine.runs.signal_with_start(start(input=payload("true"), workflow_id="w"), signal)
    spec = ScheduleSpec(workflow_type="hello", interval_us=60_000_000, input=payload("{}"))
    with pytest.raises(InvalidArgument, match="got object"):
        await engine.schedules.create("default", "every-minute", spec)
    assert await runs(engine) == 1


async def test_a_signal_that_does_not_fit_is_refused_before_anything_is_changed(engine: Engine) -> None:
    await register(engine, NUMBER)
    run = await engine.runs.start(start(input=payload("1"), workflow_id="w"))
    refusal = "signal: expected a whole number, got null.*signal 'go' of workflow 'hello'"
    for where in ({"run_id": run.run_id}, {"workflow_id": "w"}):
        with pytest.raises(InvalidArgument, match=refusal):
            await engine.control.signal("default", **where, signal=sent("go", payload("null")))
    with pytest.raises(InvalidArgument, match="got string"):
        await engine.runs.signal_with_start(start(input=payload("1"), workflow_id="w"), sent("go", payload('"x"')))
    await engine.control.signal("default", run_id=run.run_id, signal=sent("go", payload("1")))
    change = SignalReplacement(name="go", payload=payload("[]"), request_id="r")
    with pytest.raises(InvalidArgument, match="got array"):
        await engine.control.replace_signal("default", run_id=run.run_id, change=change)
    await engine.control.signal("default", run_id=run.run_id, signal=sent("other", payload("[]")))


async def test_a_child_that_does_not_fit_is_refused_and_one_that_was_started_is_not(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])

    def child(step_id: str, data: str) -> StartChild:
        child_run = StartRun(
            run=RunKey("default", ""), workflow_id=step_id, workflow_type="child", request_id="", input=payload(data)
        )
        return StartChild(run=run.run, lease=run.lease, step_id=step_id, name=step_id, start=child_run)

    await session.submit([(1, child("before", '"x"'))])
    assert isinstance(await outlet.answer_to(1), ChildStarted)
    await register(engine, NUMBER, "child@1")
    await session.submit([(2, child("before", '"x"')), (3, child("after", '"x"')), (4, child("fits", "1"))])
    assert isinstance(await outlet.answer_to(2), ChildStarted)
    answer = await outlet.answer_to(3)
    assert isinstance(answer, StepFailed)
    assert "input: expected a whole number, got string" in answer.error.message
    assert isinstance(await outlet.answer_to(4), ChildStarted)


async def test_what_may_be_accepted_is_let_through(engine: Engine, clock: MovableClock) -> None:
    await engine.runs.start(start(input=payload('"x"')))  # no worker has ever registered it
    await register(engine, NUMBER)
    await engine.runs.start(start(input=Payload(b"sealed", {"encoding": "aes"})))
    await engine.runs.start(start(input=payload('"x"'), version="77"))
    await engine.runs.start(start("unknown", input=payload('"x"')))
    await register(engine, TEXT)  # one build replaces another
    for data in ("1", '"x"'):
        await engine.runs.start(start(input=payload(data)))
    with pytest.raises(InvalidArgument):
        await engine.runs.start(start(input=payload("[]")))
    clock.ahead_us += SCHEMA_EARLIER_US + 1
    engine.versions.forget_all()
    await engine.runs.start(start(input=payload('"x"')))
    with pytest.raises(InvalidArgument, match="expected string, got number"):
        await engine.runs.start(start(input=payload("1")))
    await register(engine, None)  # a worker that says nothing may accept anything
    await engine.runs.start(start(input=payload("[]")))


async def test_the_version_that_executes_the_run_decides(engine: Engine) -> None:
    await register(engine, NUMBER, "hello@1")
    await register(engine, TEXT, "hello@2")
    await engine.runs.start(start(input=payload('"x"')))
    first = await engine.runs.start(start(input=payload("1"), version="1"))
    with pytest.raises(InvalidArgument, match="version 1"):
        await engine.runs.start(start(input=payload('"x"'), version="1"))
    with pytest.raises(InvalidArgument):
        await engine.control.signal("default", run_id=first.run_id, signal=sent("go", payload('"x"')))
    await engine.control.signal("default", run_id=first.run_id, signal=sent("go", payload("1")))


async def test_a_start_that_only_asks_for_a_run_that_is_there_is_answered(engine: Engine) -> None:
    there = await engine.runs.start(start(input=payload('"x"'), workflow_id="w"))
    await register(engine, NUMBER)
    again = await engine.runs.start(start(input=payload('"x"'), workflow_id="w"))
    assert again.run_id == there.run_id


async def test_checks_cost_no_statement_once_they_are_known(engine: Engine, store: TroubledStore) -> None:
    await register(engine, NUMBER)
    await engine.runs.start(start(input=payload("1")))
    before = store.statements
    await engine.runs.start(start(input=payload("1")))
    one_start = store.statements - before
    before = store.statements
    with pytest.raises(InvalidArgument):
        await engine.runs.start(start(input=payload("[]")))
    assert store.statements == before
    assert one_start > 0


async def test_others_go_on_while_the_inputs_of_a_batch_are_checked(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await register(engine, NUMBER)
    turns = 0
    seen: set[int] = set()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def expensive(*_: object) -> None:
        seen.add(turns)
        time.sleep(0.005)

    monkeypatch.setattr(runs_module, "input_misfit", expensive)
    counting = asyncio.ensure_future(count_turns())
    await engine.runs.start_many([start(input=payload("1")) for _ in range(60)])
    counting.cancel()
    assert len(seen) > 10


async def test_nothing_is_kept_of_signals_that_clients_make_up(engine: Engine) -> None:
    await register(engine, NUMBER)
    run = await engine.runs.start(start(input=payload("1")))
    for name in ("go", "a", "b", "c"):
        await engine.control.signal("default", run_id=run.run_id, signal=sent(name, payload("1")))
    (known,) = engine.schemas._checks.values()
    assert set(known._signals) == {"go"}


async def test_schemas_are_remembered_up_to_so_many_bytes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_REMEMBERED_BYTES", 3 * SCHEMA_BYTES)
    for number in range(8):
        schemas = TypeSchemas(input_schema=f'{{"type":"string","title":"{number}{"x" * (SCHEMA_BYTES - 100)}"}}')
        await register(engine, schemas, f"t{number}@1")
        with pytest.raises(InvalidArgument, match="got number"):
            await engine.runs.start(start(f"t{number}", input=payload("1")))
    assert 1 <= len(engine.schemas._checks) <= 3


async def test_a_signal_for_many_versions_is_checked_within_the_bounds_of_one_check(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version may have a schema of its own, as expensive as can be."""
    versions = [f"hello@{number}" for number in range(12)]
    for number, served in enumerate(versions):
        schema = f'{{"items":{{"allOf":[{",".join([f"""{{"minimum":-{number}}}"""] * 1_000)}]}}}}'
        await register(engine, TypeSchemas(signal_schemas={"go": schema}), served)
    visited: list[int] = []
    misfit = TypeChecks.signal_misfit

    def counted(known: TypeChecks, name: str, value: Payload, visits: Visits) -> Misfit | None:
        answer = misfit(known, name, value, visits)
        visited.append(visits.left)
        return answer or Misfit("", "")

    monkeypatch.setattr(TypeChecks, "signal_misfit", counted)
    with pytest.raises(InvalidArgument):
        await engine.runs.signal_with_start(start(workflow_id="w"), sent("go", payload("[1,1,1,1,1,1,1,1,1,1]")))
    assert len(visited) == len(versions)
    assert visited == sorted(visited, reverse=True)
    assert visited[-1] < 0


async def test_schemas_are_told_as_they_were_registered(engine: Engine) -> None:
    with pytest.raises(NotFound, match="workflow type"):
        await engine.schemas.get("default", "hello")
    await register(engine, NUMBER)
    record = await engine.schemas.get("default", "hello")
    assert (record.version, record.description, record.input_schema) == ("1", "Counts.", '{"type":"integer"}')
    assert record.signal_schemas == {"go": '{"type":"integer"}'}
    assert record.registered_at
    with pytest.raises(NotFound, match="version"):
        await engine.schemas.get("default", "hello", "2")
    with pytest.raises(NotFound):
        await engine.schemas.get("elsewhere", "hello")


async def test_the_schema_of_a_type_can_be_read_when_all_its_versions_are_deprecated(engine: Engine) -> None:
    await register(engine, NUMBER, "hello@9", "hello@10")
    for version in ("9", "10"):
        await engine.versions.deprecate("default", "hello", version, undo=False)
    assert (await engine.schemas.get("default", "hello")).version == "10"
    await engine.versions.deprecate("default", "hello", "9", undo=True)
    assert (await engine.schemas.get("default", "hello")).version == "9"


async def test_a_schema_that_is_too_large_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidArgument, match=f"input_schema of hello has .* bytes; the limit is {SCHEMA_BYTES}"):
        await register(engine, TypeSchemas(input_schema=" " * (SCHEMA_BYTES + 1)))
    too_many = {f"s{number}": "{}" for number in range(101)}
    with pytest.raises(InvalidArgument, match="101 signals; the limit is 100"):
        await register(engine, TypeSchemas(signal_schemas=too_many))
    many = {Served(f"t{number}", "1"): TypeSchemas(input_schema=" " * SCHEMA_BYTES) for number in range(17)}
    with pytest.raises(InvalidArgument, match="bytes of schemas"):
        await engine.workers.register(worker("hello"), many)

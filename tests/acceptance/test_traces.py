"""A run that slept, failed once, had a child and moved to another worker is one tree of spans, and `kagzi trace` makes
the same tree from its history. One that is old or long has several, which link to each other."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanContext

from kagzi import Kagzi, Run, RunStatus, Worker
from kagzi.cli.main import kagzi
from kagzi.core.limits import Settings
from kagzi.sdk.tracing import history, stretch
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from tests.acceptance.traced_orders import APPROVED, charges, delivery, long_order, order, provider_to
from tests.support.collector import Collector, Seen, attributes, collecting
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE

SECRET = "4111-1111"
ANY_PORT = ListenAddress("127.0.0.1", 0)
QUICK = Settings(lease_ms=2_000, heartbeat_ms=500, reconnect_grace_ms=300, poll_interval_ms=500)
WORKFLOWS = [order, delivery, long_order]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture
def provider(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    """That of this program, as long as the test runs. It writes spans as bytes; `worker_that_hangs` does not."""
    provider = provider_to(collector.url, own=True)
    monkeypatch.setattr(otel, "get_tracer_provider", lambda: provider)
    charges.clear()
    yield provider
    provider.shutdown()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/kagzi.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@asynccontextmanager
async def serving(database_url: str, settings: Settings = QUICK) -> AsyncGenerator[str]:
    """The address of a server."""
    server = Server(ServerConfig(db=database_url, listen=ANY_PORT, http=None, settings=settings))
    await server.start()
    try:
        yield server.grpc_address
    finally:
        await server.stop(0)


@asynccontextmanager
async def worker_that_hangs(address: str, collector: Collector) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A process, killed in the end."""
    environment = {**os.environ, "KAGZI_TEST_OTLP": collector.url, "KAGZI_TEST_HANGS": "1"}
    arguments = ("-m", "tests.support.worker_process", address, "tests.acceptance.traced_orders")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"worker ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def asleep(run: Run[object]) -> None:
    async def is_asleep() -> bool:
        return await run.status() is RunStatus.SLEEPING and (await run.info()).wake_at is not None

    await until(is_asleep, what="the run sleeps")


async def trace(address: str, run_id: str, *options: str) -> str:
    """What the command prints. It has an event loop of its own."""
    done = await asyncio.to_thread(CliRunner().invoke, kagzi, ["trace", run_id, "--address", address, *options])
    assert done.exit_code == 0, done.output
    return done.stdout


async def from_history(address: str, run_id: str, collector: Collector) -> set[Seen]:
    collector.spans.clear()
    await trace(address, run_id, "--otlp", collector.url)
    return collector.seen()


async def test_one_tree_live_and_the_same_from_history(
    collector: Collector, provider: TracerProvider, database_url: str
) -> None:
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(serving(database_url))
        client = await stack.enter_async_context(Kagzi.connect(address))
        async with worker_that_hangs(address, collector) as process:
            with provider.get_tracer("web").start_as_current_span("POST /orders") as request:
                run = await client.start(order, SECRET, id="order-7")
            await asleep(run)
            await until(lambda: "run order" in {each.name for each in collector.spans}, what="its spans have come")
            await run.wake()

            async def packing() -> bool:
                return any(step.id == "pack" for step in await run.steps())

            await until(packing, what="the worker is in the middle of a step")
            process.kill()
            await process.wait()
        assert process.returncode == -9
        await stack.enter_async_context(Worker(address, workflows=WORKFLOWS))
        logged = await run.result(timeout=LOADED_MACHINE)
        await asyncio.to_thread(provider.force_flush)
        live, spans = collector.seen(), list(collector.spans)
        again = await from_history(address, run.id, collector)
        assert SECRET not in str(collector.spans)

    names = sorted(each.name for each in live)
    assert [name for name in names if name.startswith("st")] == [
        "start order", "step charge", "step charge", "step pack", "step ship",
    ]  # fmt: skip
    assert names.count("run delivery") == 1
    assert names.count("run order") >= 2
    (trace_id,) = {each.trace_id for each in live}
    assert {trace_id, *logged} == {f"{request.get_span_context().trace_id:032x}"}
    by_id = {each.span_id: each for each in live}
    (root,) = [each for each in live if each.parent_span_id not in by_id]
    assert (root.name, root.parent_span_id) == ("start order", f"{request.get_span_context().span_id:016x}")
    assert {by_id[each.parent_span_id].name for each in live if each.name == "run delivery"} == {"run order"}
    assert sorted(each.name for each in live if each.failed) == ["step charge"]
    assert len({made["kagzi.worker.id"] for made in map(attributes, spans) if "kagzi.worker.id" in made}) == 2
    inserts = {each.parent_span_id.hex() for each in spans if each.name == "insert payment"}
    assert {by_id[each].name for each in inserts} == {"step charge"}
    assert SECRET not in str(spans)

    assert live <= again
    assert sorted((each.name, each.failed) for each in again - live) == [
        ("run order", False),
        ("step pack", True),
    ], "only history has what the killed worker was at"


async def test_a_run_that_nobody_traced_has_a_tree_too(collector: Collector, tmp_path: Path) -> None:
    charges.clear()
    address = f"sqlite:///{tmp_path}/kagzi.db"
    async with Kagzi.connect(address) as client, Worker(address, workflows=WORKFLOWS):
        run = await client.start(order, SECRET)
        await asleep(run)
        await run.wake()
        assert await run.result(timeout=LOADED_MACHINE) == ["", "", ""]
    first = await from_history(address, run.id, collector)
    assert len({each.trace_id for each in first}) == 1
    assert [each.name for each in first if not each.parent_span_id] == ["start order"]
    assert await from_history(address, run.id, collector) == first

    printed = json.loads(await trace(address, run.id, "--json"))
    assert {each["span_id"] for each in printed} == {each.span_id for each in first}
    assert "    step charge (attempt 2)" in await trace(address, run.id)


async def test_a_worker_that_traces_makes_the_span_of_a_start_that_nobody_made(
    collector: Collector, provider: TracerProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite:///{tmp_path}/kagzi.db"
    async with AsyncExitStack() as stack:
        with monkeypatch.context() as untraced:
            untraced.setattr(otel, "get_tracer_provider", lambda: None)
            client = await stack.enter_async_context(Kagzi.connect(address))
        await stack.enter_async_context(Worker(address, workflows=WORKFLOWS))
        run = await client.start(order, SECRET)
        await asleep(run)
        await run.wake()
        await run.result(timeout=LOADED_MACHINE)
    provider.force_flush()
    live = collector.seen()
    assert await from_history(address, run.id, collector) == live
    assert [each.name for each in live if not each.parent_span_id] == ["start order"]


@pytest.mark.parametrize("rule", ["young and short", "old", "many steps", "many records"])
async def test_traces_of_old_and_long_runs_are_cut_and_linked(
    collector: Collector,
    provider: TracerProvider,
    database_url: str,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Live and from history alike: of a run with a signal, that continues as a new one."""
    settings = msgspec.structs.replace(QUICK, trace_max_age_ms=1) if rule == "old" else QUICK
    if rule == "many steps":
        for module in (stretch, history):
            monkeypatch.setattr(module, "PART_ENTRIES", 2)
    if rule == "many records":
        for module in ("sqlite.claim.claims", "postgres.claim.permits"):
            monkeypatch.setattr(f"kagzi.store.{module}.OWN_TRACE_SEQ", 8)
    async with serving(database_url, settings) as address, Kagzi.connect(address) as client:
        async with Worker(address, workflows=WORKFLOWS):
            run = await client.start(long_order, 2)
            runs, senders = [run.id], list[SpanContext]()
            for _ in range(2):
                with provider.get_tracer("web").start_as_current_span("approve") as span:
                    await client.signal(runs[-1], APPROVED, True)
                    senders.append(span.get_span_context())
                here = client.get(runs[-1])
                await asleep(here)
                await here.wake()
                if len(runs) == 1:
                    runs.append(await until(lambda: successor(client, runs[0]), what="it continues"))
            await run.result(timeout=LOADED_MACHINE)
        await asyncio.to_thread(provider.force_flush)
        live = collector.seen()
        again = [await from_history(address, run_id, collector) for run_id in runs]
    assert again[0] | again[1] == live
    check_division(live, again, rule)
    for spans, sender in zip(again, senders, strict=True):
        links = {link for each in spans for link in each.links}
        assert (f"{sender.trace_id:032x}", f"{sender.span_id:016x}") in links, "to the sender of the signal"


async def successor(client: Kagzi, run_id: str) -> str | None:
    return (await client.get(run_id).info()).continued_as


def check_division(live: set[Seen], again: list[set[Seen]], rule: str) -> None:
    first, second = again
    (start,) = [each for each in first if each.name == "start long-order"]
    (restart,) = [each for each in second if each.name == "start long-order"]
    traces = {each.trace_id for each in first}
    assert restart.trace_id not in traces, "always after continue_as_new"
    assert (start.trace_id, start.span_id) in restart.links
    roots = [each for each in live if not each.parent_span_id]
    divided = [each for each in roots if each.name == "run long-order"]
    assert len(traces) == 1 if rule == "young and short" else len(traces) > 1
    assert bool(divided) is (rule != "young and short")
    known = {(each.trace_id, each.span_id) for each in live}
    for each in divided:
        begun_by = {link for link in each.links if link in known}
        assert begun_by & {(start.trace_id, start.span_id), (restart.trace_id, restart.span_id)}, "to the start"
    for run in again:
        here = {(each.trace_id, each.span_id) for each in run}
        assert all((each.trace_id, each.parent_span_id) in here for each in run if each.name.startswith("step"))

"""The page of metrics: every metric there is, right in form, bounded, of all processes; also without its store."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kagzi import Context, Kagzi, NotFound, Worker, workflow
from kagzi.core.access import EVERY_NAMESPACE
from kagzi.core.run.commands import StartRequest
from kagzi.engine import Engine
from kagzi.engine.measurements import store_gauges
from kagzi.engine.measurements.values import OTHER, Samples
from kagzi.server.app import Server
from kagzi.server.metrics.catalogue import METRICS, Kind
from kagzi.server.metrics.exposition import exposition
from kagzi.server.metrics.siblings import Siblings
from kagzi.server.peers import PeerProcess, Peers, ProcessState
from tests.server.conftest import ANY_PORT, StartServer
from tests.support.polling import until

SERIES_MOST = 20_000
BYTES_MOST = 3 * 1024 * 1024


@workflow
async def greet(ctx: Context, name: str) -> str:
    return await ctx.step("greet").run(_greeting, name)


async def _greeting(name: str) -> str:
    return f"hello {name}"


@pytest.fixture
async def web(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> Server:
    """It waits for its store as long as a loaded machine needs."""
    monkeypatch.setattr(store_gauges, "WAIT_S", 60.0)
    return await start_server(http=ANY_PORT)


@pytest.fixture
async def http(web: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=web.http_url) as client:
        yield client


def engine_of(server: Server) -> Engine:
    assert server._engine is not None
    return server._engine


def samples(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def value(page: list[Sample], name: str, **labels: str) -> float:
    (one,) = (each.value for each in page if each.name == name and each.labels == labels)
    return one


async def test_the_page_has_every_metric_and_tells_what_happened(web: Server, http: httpx.AsyncClient) -> None:
    async with Worker(web.grpc_address, workflows=[greet]), Kagzi.connect(web.grpc_address) as client:
        assert await client.run(greet, "ada") == "hello ada"
        with pytest.raises(NotFound):
            await client.get("01a1e208-b817-7f81-a56a-09c0d8a164cc").status()
        assert (await http.get("/made/up/by/the/caller")).status_code == 404
        assert (await http.get("/api/v1/runs/nope")).status_code == 404
        await http.get("/metrics")
        response = await http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    metrics = {family.name: family for family in text_string_to_metric_families(response.text)}
    for metric in METRICS:
        family = metrics[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind.value, metric.help)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), metric.name
    page = samples(response.text)
    greeted = {"namespace": "default", "workflow_type": "greet"}
    assert value(page, "kagzi_runs_started_total", **greeted, cause="client") == 1
    assert value(page, "kagzi_runs_ended_total", **greeted, status="completed") == 1
    assert value(page, "kagzi_step_attempts_total", **greeted, outcome="completed") == 1
    assert value(page, "kagzi_run_duration_seconds_count", **greeted) == 1
    assert value(page, "kagzi_run_wait_seconds_count", **greeted) == 1
    assert value(page, "kagzi_workers", namespace="default", status="online") == 1
    assert value(page, "kagzi_worker_slots", namespace="default", state="free") == 100
    assert value(page, "kagzi_sessions") == value(page, "kagzi_ready") == 1
    assert value(page, "kagzi_streams", kind="Session") == 1
    calls = "kagzi_rpc_duration_seconds_count"
    assert value(page, calls, method="WorkflowService/GetWorkflow", code="NOT_FOUND") >= 1
    requests = "kagzi_http_request_duration_seconds_count"
    assert value(page, requests, route="unmatched", status_class="4xx") == 1
    assert value(page, requests, route="/metrics", status_class="2xx") == 1
    assert value(page, requests, route="/runs/{run}", status_class="4xx") == 1


async def test_an_incident_is_counted(web: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(engine_of(web).runs, "get", broken)
    run_id = "01a1e208-b817-7f81-a56a-09c0d8a164cc"
    async with Kagzi.connect(web.grpc_address) as client:
        with pytest.raises(Exception, match="incident"):
            await client.get(run_id).status()
    page = samples((await http.get("/metrics")).text)
    assert value(page, "kagzi_incidents_total") == 1
    assert value(page, "kagzi_rpc_duration_seconds_count", method="WorkflowService/GetWorkflow", code="INTERNAL") >= 1


async def test_where_keys_are_needed_the_page_is_for_those_who_may_read_everything(start_server: StartServer) -> None:
    web = await start_server(http=ANY_PORT, auth="keys")
    keys = engine_of(web).keys
    everywhere = await keys.create(EVERY_NAMESPACE, "prometheus", ["read"])
    elsewhere = await keys.create("default", "somebody", ["read"])
    async with httpx.AsyncClient(base_url=web.http_url) as http:
        answers = [
            (await http.get("/metrics", headers={"Authorization": f"Bearer {key}"} if key else {})).status_code
            for key in (everywhere.text, elsewhere.text, "")
        ]
        assert answers == [200, 403, 401]
        assert (await http.get("/readyz")).status_code == 200


async def test_two_servers_of_one_process_count_apart(start_server: StartServer) -> None:
    one, other = await start_server(http=ANY_PORT), await start_server(http=ANY_PORT)
    async with Kagzi.connect(one.grpc_address) as client:
        await client.start("greet", "ada")
    assert dict(one.samples()["kagzi_runs_started_total"]) == {("default", "greet", "client"): 1}
    assert other.samples()["kagzi_runs_started_total"] == []


async def test_with_10_000_types_and_1_000_namespaces_the_page_is_bounded(web: Server, http: httpx.AsyncClient) -> None:
    """Counted by hand here, as the campaign `make metrics` does it with runs."""
    engine = engine_of(web)
    for number in range(10_000):
        counts = engine.measurements.of(f"namespace-{number % 1_000}", f"workflow-type-{number}")
        counts.started["client"] += 1
        counts.duration.observe(1.0)
        counts.wait.observe(1.0)
    starts = [StartRequest(namespace=f"namespace-{number}", workflow_type=f"type-{number}") for number in range(400)]
    for first in range(0, len(starts), 100):
        await engine.runs.start_many(starts[first : first + 100])
    response = await http.get("/metrics")
    page = samples(response.text)
    assert len(page) <= SERIES_MOST
    assert len(response.content) <= BYTES_MOST
    started = [each for each in page if each.name == "kagzi_runs_started_total"]
    assert sum(each.value for each in started) == 10_400
    assert len({each.labels["namespace"] for each in started}) == 51
    assert len({each.labels["workflow_type"] for each in started}) <= 201
    depth = [each for each in page if each.name == "kagzi_queue_depth"]
    assert sum(each.value for each in depth) == 400
    assert OTHER in {each.labels["workflow_type"] for each in depth}
    began_s = time.process_time()
    exposition({"": engine.measurements.samples()})
    assert time.process_time() - began_s < 1.0, "2 to 20 ms on a quiet machine"


async def test_without_its_store_the_page_tells_what_the_process_knows(
    web: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*args: object, **kwargs: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(engine_of(web)._journal._store, "queue_gauges", never)
    monkeypatch.setattr(store_gauges, "WAIT_S", 0.01)
    page = {each.name for each in samples((await http.get("/metrics")).text)}
    assert "kagzi_open_runs" not in page
    assert "kagzi_commit_operations_count" in page


def test_labels_are_escaped_and_buckets_add_up() -> None:
    evil = 'a"b\\c\nd'
    page = exposition({"": {"kagzi_run_wait_seconds": [((evil, "t"), ([1] * 15, 7.5))]}}).decode()
    page = [sample for sample in samples(page) if sample.labels.get("namespace") == evil]
    buckets = [sample.value for sample in page if sample.name.endswith("_bucket")]
    assert buckets == list(range(1, 16))
    assert value(page, "kagzi_run_wait_seconds_count", namespace=evil, workflow_type="t") == 15
    assert value(page, "kagzi_run_wait_seconds_sum", namespace=evil, workflow_type="t") == 7.5


def test_names_follow_the_conventions_of_prometheus() -> None:
    for metric in METRICS:
        assert metric.name.startswith("kagzi_")
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM), metric.name
        assert "_id" not in "".join(metric.labels)
    assert len({metric.name for metric in METRICS}) == len(METRICS)


async def test_processes_of_a_server_tell_each_other(tmp_path: Path) -> None:
    processes = tuple(PeerProcess(number, 100 + number, ProcessState.READY) for number in (1, 2, 3))
    serving: list[asyncio.Task[None]] = []
    siblings: list[Siblings] = []
    for number in (1, 2):
        peers = Peers(number)
        peers.processes = processes
        own: Samples = {"kagzi_leases_lost_total": [((), number)], "kagzi_commit_operations": [((), ([1, 2], 0.5))]}
        siblings.append(Siblings(tmp_path, peers, lambda own=own: own))  # type: ignore[misc]
        serving.append(asyncio.create_task(siblings[-1].serve()))
    try:
        await until(lambda: len(list(tmp_path.iterdir())) == 2)
        answers = await siblings[0].ask()
        assert {number: dict(page["kagzi_leases_lost_total"]) for number, page in answers.items()} == {"2": {(): 2}}
        assert answers["2"]["kagzi_commit_operations"] == [((), ([1, 2], 0.5))]
        page = exposition({"": {}, **answers, "1": {"kagzi_leases_lost_total": [((), 1)]}}).decode()
        page = {each.labels["process"]: each.value for each in samples(page) if each.name == "kagzi_leases_lost_total"}
        assert page == {"1": 1, "2": 2}
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

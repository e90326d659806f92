"""The HTTP side: probes, and plain pages: one that says what is here, a list of runs, and a page for every run."""

import re
from collections.abc import AsyncIterator
from html import unescape

import grpc
import httpx
import pytest

from kagzi.server.app import Server
from kagzi.server.listen import ListenAddress
from kagzi.v1 import admin_pb2, common_pb2, worker_pb2, workflow_pb2
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload, leased


@pytest.fixture
async def web(start_server: StartServer) -> Server:
    return await start_server(http=ListenAddress("127.0.0.1", 0))


@pytest.fixture
async def client(web: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=web.http_url, timeout=TIMEOUT_S) as client:
        yield client


@pytest.fixture
async def web_stubs(web: Server) -> AsyncIterator[Stubs]:
    async with grpc.aio.insecure_channel(web.grpc_address) as channel:
        yield Stubs(channel)


async def test_probes(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).text == "ok\n"
    assert (await client.get("/readyz")).text == "ready\n"


async def test_the_front_page_says_what_to_type(client: httpx.AsyncClient, web: Server) -> None:
    page = await client.get("/plain")
    assert page.status_code == 200
    for words in ("kagzi start hello world --wait", web.grpc_address, "0.1.0", ":memory:", "/readyz"):
        assert words in page.text


async def test_clients_learn_the_url(web: Server, web_stubs: Stubs) -> None:
    info = await web_stubs.admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=TIMEOUT_S)
    assert info.http_url == web.http_url
    assert (info.api_version, info.store) == ("v1", "sqlite")
    assert info.max_payload_bytes == 2 * 1024 * 1024


async def test_every_run_has_a_page_and_nothing_of_it_is_markup(client: httpx.AsyncClient, web_stubs: Stubs) -> None:
    evil = "<script>alert(1)</script>"
    worker_id = await web_stubs.register(evil)
    started = await web_stubs.start(evil, input=json_payload(f'"{evil}"'), workflow_id=evil, namespace_id="default")
    plain = f"/plain/runs/{started.run_id}"
    assert (await client.get(plain)).status_code == 200
    task = await web_stubs.poll(worker_id)
    begin = worker_pb2.BeginStepRequest(**leased(task), step_name=evil)
    await web_stubs.workers.BeginStep(begin, timeout=TIMEOUT_S)
    fail = worker_pb2.FailWorkflowRequest(
        **leased(task), error=common_pb2.ErrorDetail(message=evil, traceback=evil, type="ValueError")
    )
    await web_stubs.workers.FailWorkflow(fail, timeout=TIMEOUT_S)
    for path in (plain, "/plain/runs"):
        page = await client.get(path)
        assert page.status_code == 200
        assert "failed" in page.text
        assert "&lt;script&gt;" in page.text
        assert evil not in page.text


async def test_a_run_s_page_leads_to_its_children_and_back(client: httpx.AsyncClient, web_stubs: Stubs) -> None:
    worker_id = await web_stubs.register()
    parent = await web_stubs.start()
    task = await web_stubs.poll(worker_id)
    child_start = workflow_pb2.StartWorkflowRequest(workflow_type="bill")
    request = worker_pb2.StartChildRequest(**leased(task), step_id="bill", start=child_start)
    child = await web_stubs.workers.StartChild(request, timeout=TIMEOUT_S)
    page = await client.get(f"/plain/runs/{parent.run_id}")
    assert f'href="/plain/runs/{child.child_run_id}?namespace=default"' in page.text
    assert "Children" in page.text
    child_page = await client.get(f"/plain/runs/{child.child_run_id}")
    assert f'parent: <a href="/plain/runs/{parent.run_id}?namespace=default"' in child_page.text


async def test_the_page_of_a_run_is_that_of_its_namespace(client: httpx.AsyncClient, web_stubs: Stubs) -> None:
    started = await web_stubs.start(namespace_id="team a")
    plain = f"/plain/runs/{started.run_id}"
    assert started.url.endswith(f"/runs/{started.run_id}?namespace=team+a")
    assert (await client.get(plain, params={"namespace": "team a"})).status_code == 200
    assert (await client.get(plain)).status_code == 404


async def test_runs_are_listed_page_by_page(client: httpx.AsyncClient, web_stubs: Stubs) -> None:
    runs = {(await web_stubs.start(namespace_id="many")).run_id for _ in range(51)}
    page = await client.get("/plain/runs", params={"namespace": "many"})
    shown = {run for run in runs if run in page.text}
    assert len(shown) == 50
    link = re.search(r'href="([^"]*)">older runs', page.text)
    assert link is not None
    older = await client.get(unescape(link[1]))
    assert {run for run in runs if run in older.text} == runs - shown
    assert "older runs" not in older.text
    assert (await client.get("/plain/runs?token=nonsense")).status_code == 400


async def test_a_run_that_is_not_there_has_none(client: httpx.AsyncClient) -> None:
    page = await client.get("/plain/runs/%3Cb%3E")
    assert page.status_code == 404
    assert "<b>" not in page.text


@pytest.mark.parametrize("path", ["/", "/healthz", "/runs/x", "/plain/runs/x", "/nothing"])
async def test_every_answer_has_the_headers_that_keep_strangers_out(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "[::1"])
async def test_another_host_name_is_turned_away(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/", headers={"Host": host})).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8420", "[::1]:1"])
async def test_names_of_this_machine_are_served(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/healthz", headers={"Host": host})).status_code == 200

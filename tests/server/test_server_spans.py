"""Spans of calls: by each way in, part of the caller's trace; and a server that makes none does not load anything."""

import subprocess
import sys
from typing import Any

import grpc
import httpx
import msgspec
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from kagzi.core.records import Payload
from kagzi.core.traces.propagation import context_from, metadata_from
from kagzi.server.app import Server
from kagzi.server.startup import CannotStart
from kagzi.v1 import workflow_pb2 as pb
from tests.server.conftest import ANY_PORT, StartServer, channel_to
from tests.server.stubs import TIMEOUT_S, Stubs
from tests.support.collector import attributes, collecting
from tests.support.transports import GRPC, WEBSOCKET

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
UNSAMPLED = f"00-{TRACE}-{SPAN}-00"


async def calls(server: Server, way: str) -> None:
    async with channel_to(server, way) as channel:
        stubs = Stubs(channel)
        metadata = (("traceparent", PARENT), ("tracestate", "other=1"))
        request = pb.StartWorkflowRequest(workflow_type="greet")
        await stubs.workflows.StartWorkflow(request, timeout=TIMEOUT_S, metadata=metadata)
        with pytest.raises(grpc.aio.AioRpcError):
            await stubs.workflows.GetWorkflow(
                pb.GetWorkflowRequest(run_id="none"), timeout=TIMEOUT_S, metadata=metadata
            )
        unsampled = (("traceparent", UNSAMPLED),)
        await stubs.workflows.StartWorkflow(request, timeout=TIMEOUT_S, metadata=unsampled)
        await stubs.poll(await stubs.register("elsewhere"), wait={"nanos": 1_000_000})


async def requests(server: Server) -> None:
    async with httpx.AsyncClient(base_url=f"{server.http_url}/api/v1", timeout=TIMEOUT_S) as client:
        headers = {"traceparent": PARENT, "tracestate": "other=1, kagzi=0000000000000007"}
        started = await client.post("/runs", json={"workflow": "greet", "context": {"tenant": 1.50}}, headers=headers)
        run = started.json()["run_id"]
        assert (await client.get(f"/runs/{run}/context")).json() == {
            "tenant": 1.5,
            "traceparent": PARENT,
            "tracestate": "other=1",
        }
        assert (await client.get("/runs/none", headers=headers)).status_code == 404
        assert (await client.get("/nothing", headers=headers)).status_code == 404
        await client.get(f"{server.http_url}/healthz")


async def test_calls_by_each_way_are_part_of_the_callers_trace(start_server: StartServer) -> None:
    with collecting() as collector:
        server = await start_server(http=ANY_PORT, otlp=collector.url)
        for way in (GRPC, WEBSOCKET):
            await calls(server, way)
        await requests(server)
        await server.stop(0)
        spans = [each for each in collector.spans if each.trace_id.hex() == TRACE]
    assert {each.parent_span_id.hex() for each in spans} == {SPAN}
    assert {each.kind for each in spans} == {Span.SPAN_KIND_SERVER}
    described = sorted(
        (made["rpc.system.name"], made["rpc.method"], made["rpc.response.status_code"])
        for made in map(attributes, spans)
    )
    service = "kagzi.v1.WorkflowService"
    assert described == [
        ("grpc", f"{service}/GetWorkflow", "NOT_FOUND"),
        ("grpc", f"{service}/StartWorkflow", "OK"),
        ("http", "GET /api/v1/runs/{run}", "404"),
        ("http", "GET unmatched", "404"),
        ("http", "POST /api/v1/runs", "201"),
        ("kagzi", f"{service}/GetWorkflow", "NOT_FOUND"),
        ("kagzi", f"{service}/StartWorkflow", "OK"),
    ]
    names = {each.name for each in collector.spans}
    assert not {name for name in names if "PollTask" in name or "health" in name}, "calls that wait, and probes"
    assert "kagzi.v1.WorkerService/Register" in names


@pytest.mark.parametrize("context", [None, b"", b"null", b"{}"])
def test_a_run_started_by_a_request_is_part_of_its_trace(context: bytes | None) -> None:
    made = context_from({"traceparent": PARENT}, None if context is None else Payload(context))
    assert made is not None
    assert msgspec.json.decode(made.data) == {"traceparent": PARENT}


@pytest.mark.parametrize(
    ("headers", "context"),
    [
        ({}, Payload(b"{}")),
        ({"traceparent": "nonsense"}, Payload(b"{}")),
        ({"traceparent": PARENT}, Payload(b'{"traceparent": "mine"}')),
        ({"traceparent": PARENT}, Payload(b"[1]")),
        ({"traceparent": PARENT}, Payload(b"{")),
        ({"traceparent": PARENT}, Payload(b"\x01", {"encoding": "aes-gcm"})),
    ],
)
def test_a_context_that_says_more_than_the_request_is_left_alone(headers: dict[str, str], context: Payload) -> None:
    assert context_from(headers, context) is context


def test_a_signal_says_who_sent_it() -> None:
    assert metadata_from({"traceparent": PARENT}) == {"traceparent": PARENT}
    assert metadata_from({}) is None


async def test_without_opentelemetry_the_server_says_what_to_install(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "kagzi.server.tracing.spans", raising=False)
    missing: Any = None
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", missing)
    with pytest.raises(CannotStart, match=r"--otlp needs OpenTelemetry.*pip install 'kagzi\[otel\]'"):
        await start_server(otlp="http://127.0.0.1:4318")


def test_a_server_that_makes_no_spans_does_not_load_opentelemetry() -> None:
    program = """
import asyncio, sys
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
async def main():
    server = Server(ServerConfig(db=":memory:", listen=ListenAddress("127.0.0.1", 0), http=None))
    await server.start()
    await server.stop(0)
asyncio.run(main())
import kagzi.server.http.web
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"

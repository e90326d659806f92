"""Kagzi's own exporter: the messages of OpenTelemetry's, whatever a span holds; and what becomes of a batch."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as encoded_by_opentelemetry
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from kagzi.core.errors import InvalidArgument
from kagzi.otel import OtlpExporter
from kagzi.sdk.tracing.encoding import encode_spans

SCALARS = st.one_of(st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
ATTRIBUTES = st.dictionaries(
    st.text(min_size=1), st.one_of(SCALARS, st.lists(SCALARS, max_size=3).map(tuple), st.binary()), max_size=4
)
CONTEXTS = st.builds(
    SpanContext,
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    st.booleans(),
    st.just(TraceFlags(1)),
    st.sampled_from([TraceState(), TraceState([("other", "1")])]),
)
MOMENTS = st.integers(0, 2**63)
RESOURCES = [Resource({"service.name": "orders"}), Resource({"a": (1, 2)}, "https://schema")]
SCOPES = [InstrumentationScope("kagzi", "1"), InstrumentationScope("app", None, "https://schema", {"a": True}), None]
SPANS = st.builds(
    ReadableSpan,
    name=st.text(),
    context=CONTEXTS,
    parent=st.none() | CONTEXTS,
    resource=st.sampled_from(RESOURCES),
    attributes=ATTRIBUTES,
    events=st.lists(st.builds(Event, st.text(), ATTRIBUTES, MOMENTS), max_size=2),
    links=st.lists(st.builds(Link, CONTEXTS, ATTRIBUTES), max_size=2),
    kind=st.sampled_from(SpanKind),
    status=st.sampled_from([Status(), Status(StatusCode.OK), Status(StatusCode.ERROR, "it was \u00e4rgerlich")]),
    start_time=MOMENTS,
    end_time=MOMENTS,
    instrumentation_scope=st.sampled_from(SCOPES),
)


def by_group(message: Any) -> dict[tuple[bytes, bytes], list[Any]]:
    """Spans of the same resource and scope may be in one group, or in several."""
    groups: dict[tuple[bytes, bytes], list[Any]] = {}
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            key = (
                resource.resource.SerializeToString() + resource.schema_url.encode(),
                scope.scope.SerializeToString() + scope.schema_url.encode(),
            )
            groups.setdefault(key, []).extend(scope.spans)
    return groups


@settings(max_examples=30, deadline=None)
@given(st.lists(SPANS, max_size=3))
def test_the_messages_are_those_of_opentelemetry(spans: list[ReadableSpan]) -> None:
    ours = ExportTraceServiceRequest.FromString(encode_spans(spans))
    assert by_group(ours) == by_group(encoded_by_opentelemetry(spans))


def test_a_value_that_has_no_form_is_sent_as_text() -> None:
    odd: Any = {"odd": 1j, "none": None}
    span = ReadableSpan("odd", SpanContext(1, 2, is_remote=False), attributes=odd, resource=RESOURCES[0])
    (made,) = by_group(ExportTraceServiceRequest.FromString(encode_spans([span]))).values()
    assert [each.value.string_value for each in made[0].attributes] == ["1j", ""]


SPAN = ReadableSpan("one", SpanContext(1, 2, is_remote=False), resource=RESOURCES[0])


@contextmanager
def answering(*statuses: int) -> Generator[tuple[str, list[Any]]]:
    """A collector that answers so, one after the other; the address, and what has come."""
    came: list[Any] = []
    left = list(statuses)

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                headers: dict[str, str] = {}
                while header := self.rfile.readline().strip():
                    name, _, value = header.decode().partition(": ")
                    headers[name] = value
                came.append((line.decode().split()[1], headers, self.rfile.read(int(headers["Content-Length"]))))
                self.wfile.write(b"HTTP/1.1 %d Answer\r\nContent-Length: 0\r\n\r\n" % left.pop(0))

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", came
        server.shutdown()
        serving.join()


def test_a_batch_is_sent_with_the_headers_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=a%20b,other=1")
    with answering(200, 200) as (url, came):
        exporter = OtlpExporter(url)
        assert exporter.export([SPAN]) is SpanExportResult.SUCCESS
        exporter.shutdown()
        other = OtlpExporter(f"{url}/custom?x=1", headers={"key": "mine"})
        assert other.export([SPAN]) is SpanExportResult.SUCCESS
        other.shutdown()
    (path, headers, data), (second_path, second_headers, _) = came
    assert (path, headers["api-key"], headers["Content-Type"]) == ("/v1/traces", "a b", "application/x-protobuf")
    assert ExportTraceServiceRequest.FromString(data).resource_spans[0].scope_spans[0].spans[0].name == "one"
    assert (second_path, second_headers["key"], "api-key" in second_headers) == ("/custom?x=1", "mine", False)


def test_what_may_be_sent_again_is_and_what_may_not_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kagzi.otel._FIRST_PAUSE_S", 0.001)
    with answering(503, 429, 200, 400) as (url, came):
        exporter = OtlpExporter(url)
        assert exporter.export([SPAN]) is SpanExportResult.SUCCESS
        assert len(came) == 3
        assert exporter.export([SPAN]) is SpanExportResult.FAILURE
        exporter.shutdown()
    assert "1 spans were not sent" in caplog.text
    assert "HTTP 400" in caplog.text


def test_a_collector_that_is_away_is_not_waited_for_any_longer_than_was_said() -> None:
    exporter = OtlpExporter("http://127.0.0.1:1", timeout_s=0.1)
    assert exporter.export([SPAN]) is SpanExportResult.FAILURE
    exporter.shutdown()


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="url='collector:4318' is not the address of a collector"):
        OtlpExporter("collector:4318")

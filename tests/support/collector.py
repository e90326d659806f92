"""A collector of spans in this process: OTLP over HTTP."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


class Seen(NamedTuple):
    """What makes a tree."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    kind: int
    failed: bool
    links: frozenset[tuple[str, str]] = frozenset()


class Collector:
    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Span] = []

    def take(self, message: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(message).resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def seen(self) -> set[Seen]:
        """Of Kagzi's own spans of runs."""
        return {seen(each) for each in self.spans if each.name.split()[0] in {"start", "run", "step"}}


def seen(span: Span) -> Seen:
    return Seen(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.kind,
        span.status.code == Status.STATUS_CODE_ERROR,
        frozenset((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
    )


def attributes(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@contextmanager
def collecting() -> Generator[Collector]:
    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            assert self.rfile.readline().split()[1] == b"/v1/traces"
            length = 0
            while (line := self.rfile.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            collector.take(self.rfile.read(length))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield collector
        server.shutdown()
        serving.join()

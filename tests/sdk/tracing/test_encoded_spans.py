"""Spans that are written as bytes when they end: what is sent, and when."""

import asyncio
import itertools
import os
import threading
from collections import deque
from typing import Any

import pytest
from opentelemetry import trace as otel
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator

from kagzi.core.traces.ids import SpanRef
from kagzi.otel import OtlpExporter
from kagzi.sdk.tracing import pending
from kagzi.sdk.tracing.encoding import encode_spans
from kagzi.sdk.tracing.spans import StartSpan, Tracing
from kagzi.v1 import workflow_pb2 as pb_workflow
from tests.sdk.tracing.test_spans import RUN, stretch
from tests.support.timeouts import LOADED_MACHINE_S


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The requests of Kagzi's exporter, which go nowhere."""
    requests: list[bytes] = []

    def send(_exporter: OtlpExporter, data: bytes) -> str:
        requests.append(data)
        return ""

    monkeypatch.setattr(OtlpExporter, "_send", send)
    return requests


def batching(**options: Any) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OtlpExporter("http://collector"), **options))
    return provider


def test_spans_that_are_written_as_bytes_are_those_of_the_usual_way(sent: list[bytes]) -> None:
    """With Kagzi's exporter behind a batch processor: as they began, and with what bodies, errors and links add."""
    exported, resource = InMemorySpanExporter(), Resource({"service.name": "orders"})
    messages: list[ExportTraceServiceRequest] = []
    for processor in (BatchSpanProcessor(OtlpExporter("http://collector")), SimpleSpanProcessor(exported)):
        provider = TracerProvider(resource=resource, id_generator=Numbers())
        provider.add_span_processor(processor)
        work(provider)
        provider.shutdown()
        data = b"".join(sent) or encode_spans(exported.get_finished_spans())
        messages.append(ExportTraceServiceRequest.FromString(data))
        sent.clear()
    (ours, usual) = (sorted(map(described_message, spans_of(each))) for each in messages)  # they come in any order
    assert ours == usual
    assert len(ours) == 12
    assert [each.resource for group in messages[:1] for each in group.resource_spans] == [
        each.resource for each in messages[1].resource_spans
    ]
    assert {each.scope.name for each in messages[0].resource_spans[0].scope_spans} == {"kagzi"}


class Numbers(IdGenerator):
    def __init__(self) -> None:
        self._next = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._next)

    generate_trace_id = generate_span_id


def work(provider: TracerProvider) -> None:
    """Starts, stretches and attempts of each form."""
    tracing = Tracing.on(provider)
    assert tracing is not None
    for caller in (None, {"traceparent": SpanRef(5, 6).traceparent}):
        start = tracing.start("default", "order", caller)
        asyncio.run(answered(start, pb_workflow.StartWorkflowResponse(run_id=RUN, workflow_id="order-7" * 30)))
        context = start.written_into(None)
        assert context is not None
        each = stretch(provider, context=context.data)
        each.enter("charge", "charge", 1).leave()
        each.finish("charge")
        each.enter("\u00e4" * 9_000, "long", 300).leave()
        each.finish("\u00e4" * 9_000)
        each.ended()
        each.leave()
    again = stretch(provider, claim=2)  # links to the one before
    with_more = again.enter("charge", "charge", 2)
    otel.get_current_span().set_attribute("card", "visa")
    with_more.leave()
    again.finish("charge", ConnectionError("the bank is away"), "ConnectionError")
    again.leave()
    again = stretch(provider)  # nobody has traced the start
    again.ended()
    again.leave()


async def answered(start: StartSpan, answer: pb_workflow.StartWorkflowResponse) -> None:
    async def response() -> pb_workflow.StartWorkflowResponse:
        return answer

    assert await start.of(response()) is answer


def spans_of(message: ExportTraceServiceRequest) -> list[Any]:
    return [span for group in message.resource_spans for scope in group.scope_spans for span in scope.spans]


def described_message(span: Any) -> Any:
    """In any order, without moments."""
    assert span.end_time_unix_nano > 0
    span.start_time_unix_nano = span.end_time_unix_nano = 0
    attributes = sorted((each.key, each.value.SerializeToString()) for each in span.attributes)
    del span.attributes[:]
    for event in span.events:
        event.time_unix_nano = 0
        del event.attributes[2:]  # where it was raised
    return str(span), attributes


def steps(provider: TracerProvider, count: int) -> None:
    each = stretch(provider, context=b'{"traceparent":"%s"}' % SpanRef(5, 6).traceparent.encode())
    for number in range(count):
        each.enter(f"step {number}", "step", 1).leave()
        each.finish(f"step {number}")


def names(sent: list[bytes]) -> list[str]:
    return [span.name for data in sent for span in spans_of(ExportTraceServiceRequest.FromString(data))]


def sent_early() -> None:
    """What threads are sending was sent."""
    for thread in [each for each in threading.enumerate() if each.name == "kagzi-spans"]:
        thread.join()


def test_a_processor_flushes_them_with_the_spans_of_the_program(
    sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = batching()
    for _ in range(2):
        steps(provider, 2)
        provider.get_tracer("web").start_span("own").end()
        provider.force_flush()
        assert sorted(names(sent)) == ["own", "step step", "step step"]
        sent.clear()
    steps(provider, 1)
    provider.shutdown()
    assert names(sent) == ["step step"]
    monkeypatch.setattr(pending, "SEND_AT", 2)
    steps(provider, 3)
    sent_early()
    assert names(sent) == ["step step"], "nothing is sent after it was shut down"


def test_many_are_sent_early_in_requests_of_limited_size(sent: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending.EncodedSpans, "encode_at", 1)
    monkeypatch.setattr(pending, "SEND_AT", 5)
    monkeypatch.setattr(pending, "REQUEST_SPANS", 2)
    provider = batching(schedule_delay_millis=1_000_000)
    steps(provider, 5)
    sent_early()
    assert [len(spans_of(ExportTraceServiceRequest.FromString(each))) for each in sent] == [2, 2, 1]
    provider.shutdown()
    assert len(sent) == 3


def unanswered(_spans: pending.EncodedSpans) -> None:
    """The collector does not answer."""


def test_beyond_the_limit_the_newest_are_dropped_and_counted(
    sent: list[bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pending.EncodedSpans, "encode_at", 1)
    monkeypatch.setattr(pending, "SEND_AT", 3)
    monkeypatch.setattr(pending, "PENDING_SPANS", 3)
    monkeypatch.setattr(pending.EncodedSpans, "_send", unanswered)
    provider = batching(schedule_delay_millis=1_000_000)
    steps(provider, 5)
    provider.force_flush()
    assert len(names(sent)) == 3
    assert "2 spans were dropped" in caplog.text
    provider.shutdown()


def encoded_spans(provider: TracerProvider) -> pending.EncodedSpans:
    tracing = Tracing.on(provider)
    sink = None if tracing is None else tracing._emission.find()
    assert sink is not None
    assert sink.encoded is not None
    return sink.encoded


def test_attempts_are_encoded_many_at_once_and_few_are_kept_as_objects(sent: list[bytes]) -> None:
    provider = batching(schedule_delay_millis=1_000_000)
    spans = encoded_spans(provider)
    most = spans.encode_at
    steps(provider, most - 1)
    assert (len(spans.ended), spans._count) == (most - 1, 0)
    steps(provider, 2)
    assert (len(spans.ended), spans._count) == (1, most)
    provider.shutdown()
    assert len(names(sent)) == most + 1


async def test_in_an_event_loop_they_are_encoded_once_its_other_work_is_done(
    sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_TOGETHER", 100)
    provider = batching(schedule_delay_millis=1_000_000)
    spans = encoded_spans(provider)
    for _ in range(2):
        steps(provider, 250)
        asyncio.get_running_loop().call_soon(steps, provider, 3)
        assert (len(spans.ended), spans._count) == (250, 0)
        await asyncio.sleep(0)
        assert (len(spans.ended), spans._count) == (3, 250), "what ends later is encoded with the next ones"
        await asyncio.sleep(0)
        assert (len(spans.ended), spans._count) == (0, 253)
        assert [count for count, _ in spans.take()] == [100, 100, 50, 3]
    provider.shutdown()


async def test_none_is_left_behind_if_a_sender_takes_them_at_once(sent: list[bytes]) -> None:
    provider = batching(schedule_delay_millis=1_000_000)
    spans = encoded_spans(provider)
    queue, taken = spans._on_end, list[pending.Chunk]()

    def take_at_once(_entry: object) -> None:
        spans._on_end = queue
        taken.extend(spans.take())

    spans._on_end = take_at_once
    steps(provider, 3)
    await asyncio.sleep(0)
    provider.shutdown()
    assert (sum(count for count, _ in taken), len(names(sent))) == (1, 2)


async def test_a_closed_event_loop_leaves_none_behind(sent: list[bytes]) -> None:
    provider = batching(schedule_delay_millis=1_000_000)

    async def left() -> None:
        steps(provider, 2)

    other = asyncio.new_event_loop()
    await asyncio.to_thread(other.run_until_complete, left())
    other.close()
    steps(provider, 1)
    provider.force_flush()
    assert len(names(sent)) == 3
    steps(provider, 1)
    await asyncio.sleep(0)
    assert encoded_spans(provider)._count == 1, "the next ones are encoded by the loop that there is"
    provider.shutdown()


class WatchedLock:
    """`wanted`: somebody wants it and waits for it."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self._lock = threading.RLock()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> None:
        self.wanted.set()
        self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()


def test_whoever_sends_waits_for_what_another_thread_is_encoding(
    sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a flush would return before they were sent."""
    monkeypatch.setattr(pending.EncodedSpans, "encode_at", 2)
    lock, write = WatchedLock(), pending.write_spans

    def write_late(ended: Any, most: int) -> tuple[int, bytes]:
        taken = deque(ended)
        ended.clear()
        assert lock.wanted.wait(LOADED_MACHINE_S)
        return write(taken, most)

    monkeypatch.setattr(pending, "write_spans", write_late)
    provider = batching(schedule_delay_millis=1_000_000)
    monkeypatch.setattr(encoded_spans(provider), "_encoding", lock)
    encoding = threading.Thread(target=steps, args=(provider, 2))
    encoding.start()
    while encoded_spans(provider).ended or not encoded_spans(provider).is_queued:
        assert encoding.is_alive()
    provider.force_flush()
    encoding.join()
    assert len(names(sent)) == 2
    provider.shutdown()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_leaves_what_is_pending_to_its_parent(sent: list[bytes]) -> None:
    provider = batching(schedule_delay_millis=1_000_000)
    steps(provider, 3)
    spans = encoded_spans(provider)
    child = os.fork()
    if not child:
        left = sum(count for count, _ in spans.take())
        steps(provider, 1)
        provider.force_flush()
        os._exit(len(names(sent)) + left)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1, "only its own"
    provider.shutdown()
    assert len(names(sent)) == 3

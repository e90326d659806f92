"""Live spans: what is exported, and what is left alone."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import SpanContext

from kagzi.core.traces.ids import PART_ENTRIES, SpanRef, parse_traceparent, start_of, start_state, stretch_id
from kagzi.sdk.tracing.own_spans import BodyContext, SpanOfAttempt
from kagzi.sdk.tracing.references import SPAN_KEY, STEP_KEY
from kagzi.sdk.tracing.spans import Tracing
from kagzi.sdk.tracing.stretch import Stretch
from kagzi.sdk.tracing.tracing import trace_id_of_step
from kagzi.sdk.workflow.codec import read_context
from kagzi.v1 import worker_pb2 as pb

RUN = "01a1e504-b1a4-7902-bc69-5218bfa164cc"


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exported: InMemorySpanExporter) -> Iterator[TracerProvider]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    yield provider
    provider.shutdown()


def stretch(provider: TracerProvider, *, context: bytes = b"", metadata: str = "", claim: int = 1) -> Stretch:
    tracing = Tracing.on(provider)
    assert tracing is not None
    task = pb.Task(run_id=RUN, workflow_type="order", namespace_id="default", claimed_at_us=1, created_at_us=1)
    task.lease.counter = claim
    task.context.data = context
    if metadata:
        task.context.metadata["encoding"] = metadata
    return tracing.stretch(task, "worker-1", encoded=False)


def names(exported: InMemorySpanExporter) -> list[str]:
    return [span.name for span in exported.get_finished_spans()]


def test_a_claim_in_which_nothing_came_to_a_result_has_no_span(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    stretch(provider, claim=2).leave()
    interrupted = stretch(provider, claim=3)
    interrupted.enter("charge", "charge", 1).leave()
    interrupted.leave()
    assert names(exported) == []


def test_a_child_hangs_on_the_stretch_and_inherits_the_rest(provider: TracerProvider) -> None:
    context = stretch(provider, context=b'{"tenant": "acme", "tracestate": "kagzi=0000000000000007"}').child_context()
    assert context is not None
    read = read_context(context)
    parent = parse_traceparent(read.pop("traceparent"))
    assert read == {"tenant": "acme"}
    assert parent == (start_of(RUN).trace_id, stretch_id(RUN, 1), True)


@pytest.mark.parametrize(
    ("context", "metadata"), [(b"\x00\x01", "aes-gcm"), (b"[1]", ""), (b"{", ""), (b'{"a": "%s"}' % (b"a" * 2**22), "")]
)
def test_a_context_to_which_nothing_can_be_added_is_left_alone(
    provider: TracerProvider, context: bytes, metadata: str
) -> None:
    assert stretch(provider, context=context, metadata=metadata).child_context() is None


def test_a_run_that_is_sampled_out_is_so_on_every_worker(exported: InMemorySpanExporter) -> None:
    """None of them has seen the start: they decide by the id of the trace."""
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(0)))
    provider.add_span_processor(SimpleSpanProcessor(exported))
    for claim in (1, 2):
        each = stretch(provider, claim=claim)
        each.enter("charge", "charge", 1).leave()
        each.finish("charge")
        each.leave()
    assert names(exported) == []
    provider.shutdown()


def test_spans_of_steps_are_those_that_the_sdk_would_make() -> None:
    """Light ones, and those that are made where a processor wants to see them begin."""

    class Curious(SimpleSpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            span.set_attribute("seen", "begin")

    made: list[dict[str, Any]] = []
    for kind in (SimpleSpanProcessor, Curious):
        exported, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(kind(exported))
        each = stretch(provider, claim=2)
        body = each.enter("charge", "charge", 1)
        here = otel.get_current_span()
        here.set_attribute("card", "visa")
        here.set_attribute("odd", 1j)  # type: ignore[arg-type]
        here.add_event("called", {"bank": 1})
        here.add_link(SpanContext(7, 8, is_remote=True))
        assert here.is_recording()
        assert trace_id_of_step() == f"{here.get_span_context().trace_id:032x}"
        body.leave()
        assert not otel.get_current_span().get_span_context().is_valid
        each.finish("charge", ConnectionError("the bank is away"), "ConnectionError")
        here.set_attribute("late", 1)
        each.ended()
        each.leave()
        provider.shutdown()
        made.append({span.name: described(span) for span in exported.get_finished_spans()})
    light, full = made
    assert full["step charge"]["attributes"].pop("seen") == "begin"
    assert full["run order"]["attributes"].pop("seen") == "begin"
    assert light == full
    assert light["step charge"]["attributes"]["card"] == "visa"


def described(span: ReadableSpan) -> dict[str, Any]:
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    return {
        "ids": (context.trace_id, context.span_id, parent and parent.span_id, context.trace_flags),
        "kind": span.kind,
        "attributes": dict(span.attributes or {}),
        "events": [
            (event.name, {key: value for key, value in (event.attributes or {}).items() if "stack" not in key})
            for event in span.events
        ],
        "links": [(link.context.trace_id, link.context.span_id) for link in span.links],
        "status": (span.status.status_code, span.status.description),
        "scope": (span.instrumentation_scope and span.instrumentation_scope.name),
    }


def test_the_context_of_a_body_has_its_span_for_whoever_looks(exported: InMemorySpanExporter) -> None:
    """Which is made then: most bodies do not look."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    outer = otel_context.attach(otel_context.set_value("tenant", "acme"))
    each = stretch(provider)
    readers: list[Callable[[otel_context.Context], object]] = [
        lambda here: {**here}[SPAN_KEY],
        lambda here: dict(here)[SPAN_KEY],
        lambda here: here.copy()[SPAN_KEY],
        lambda here: here[SPAN_KEY],
        lambda here: dict(here.items())[SPAN_KEY],
        lambda here: next(value for key, value in zip(here, here.values(), strict=True) if key == SPAN_KEY),
        lambda here: otel.get_current_span(otel_context.set_value("key", "value", here)),
        lambda here: otel.get_current_span() if len(here) == 3 and SPAN_KEY in here else None,
        lambda here: here.get(SPAN_KEY) if here == {**here} else None,
    ]
    for number, read_span in enumerate(readers):
        body = each.enter(f"charge#{number}", "charge", 1)
        here = otel_context.get_current()
        assert isinstance(here, BodyContext)
        assert otel_context.get_value("tenant") == "acme"
        assert otel_context.get_value("another") is None
        assert here.span is None  # nobody has looked for it
        span = read_span(here)
        assert isinstance(span, SpanOfAttempt)
        assert span is here.span is otel.get_current_span()
        assert {**here} == {"tenant": "acme", SPAN_KEY: span, STEP_KEY: span}
        with pytest.raises(ValueError, match=r".*"):
            here["tenant"] = "other"
        body.leave()
        assert otel_context.get_current() is here.before
        each.finish(f"charge#{number}")
        assert not span.is_recording()
    otel_context.detach(outer)
    unseen = each.enter("late", "late", 1)
    late = otel_context.get_current()
    unseen.leave()
    each.finish("late")
    each.leave()
    assert [span.name for span in exported.get_finished_spans()][-2:] == ["step late", "run order"]
    assert not otel.get_current_span(late).is_recording()
    provider.shutdown()


def test_threads_of_a_body_have_the_same_span(exported: InMemorySpanExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    each = stretch(provider)
    body = each.enter("charge", "charge", 1)
    here = otel_context.get_current()
    assert isinstance(here, BodyContext)
    first = here.fill()
    here.span = None  # another one that looked at the same time
    assert here.fill() is first
    body.leave()
    provider.shutdown()


@pytest.mark.parametrize("sampled", [True, False])
def test_a_start_is_sampled_as_its_caller_is(exported: InMemorySpanExporter, sampled: bool) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    tracing = Tracing.on(provider)
    assert tracing is not None
    caller = SpanRef(5, 6, sampled)
    start = tracing.start("default", "order", {"traceparent": caller.traceparent})
    written = start.written_into({"tenant": "acme"})
    assert written is not None
    context = msgspec.json.decode(written.data)
    made = parse_traceparent(context["traceparent"])
    assert made is not None
    assert (made.trace_id, made.sampled, context["tenant"], context["tracestate"]) == (
        5, sampled, "acme", start_state(6),
    )  # fmt: skip
    assert start.metadata == (("traceparent", context["traceparent"]),)


async def test_a_program_whose_sampler_is_its_own_is_asked_for_every_span(exported: InMemorySpanExporter) -> None:
    class Own(Sampler):
        def should_sample(self, parent_context: Any, trace_id: int, name: str, *args: Any, **kwargs: Any) -> Any:
            sampled.append(name)
            return ALWAYS_ON.should_sample(parent_context, trace_id, name, *args, **kwargs)

        def get_description(self) -> str:
            return "own"

    sampled: list[str] = []
    provider = TracerProvider(sampler=Own())
    provider.add_span_processor(SimpleSpanProcessor(exported))
    each = stretch(provider)
    each.enter("charge", "charge", 1).leave()
    each.finish("charge")
    each.leave()
    assert {"run order", "step charge"} <= set(sampled)
    assert names(exported) == ["start order", "step charge", "run order"]
    provider.shutdown()


def test_a_thousand_entries_are_a_trace_and_each_begins_with_links(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    each = stretch(provider)
    for number in range(PART_ENTRIES + 1):
        each.enter(f"step {number}", "step", 1).leave()
        each.finish(f"step {number}")
    each.ended()
    each.leave()
    runs = [span for span in exported.get_finished_spans() if span.name == "run order"]
    first, second = (span.get_span_context() for span in runs)
    assert first is not None
    assert second is not None
    start = start_of(RUN)
    assert (first.trace_id, first.span_id) == (start.trace_id, stretch_id(RUN, 1))
    assert second.trace_id != first.trace_id
    assert runs[1].parent is None
    assert [(link.context.trace_id, link.context.span_id) for link in runs[1].links] == [
        (start.trace_id, start.span_id),
        (first.trace_id, first.span_id),
    ]
    steps = [span for span in exported.get_finished_spans() if span.name == "step step"]
    assert [span.parent and span.parent.span_id for span in steps] == [first.span_id] * PART_ENTRIES + [second.span_id]

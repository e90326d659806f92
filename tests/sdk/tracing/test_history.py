"""The trace of a run from its history, where there is more in it than a worker can tell."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.core.traces.ids import attempt_id, start_state, stretch_id
from kagzi.sdk.client.run_records import RunInfo, read_run_info
from kagzi.sdk.client.step_records import StepAttempt, StepRecord
from kagzi.sdk.tracing.history import RunHistory, SpanLink, SpanRecord, trace_of
from kagzi.v1 import workflow_pb2 as pb

RUN = "01a1e504-b1a4-7902-bc69-5218bfa164cc"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
BEGAN = datetime(2026, 11, 16, 12, tzinfo=UTC)
LOST = ErrorDetail(kind=ErrorKind.LOST, message="the worker was lost")


def at(seconds: int) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def run(**changes: Any) -> RunInfo:
    message = pb.Workflow(run_id=RUN, workflow_id="order-7", workflow_type="order", namespace_id="default", attempts=1)
    message.created_at.FromDatetime(BEGAN)
    message.started_at.FromDatetime(at(1))
    message.finished_at.FromDatetime(at(60))
    message.status = pb.WORKFLOW_STATUS_COMPLETED
    message.claims = 2
    made = read_run_info(message)
    return RunInfo(**{name: getattr(made, name) for name in RunInfo.__slots__} | changes)


def step(id: str, claim: int, *earlier: StepAttempt, **changes: Any) -> StepRecord:
    values: dict[str, Any] = {"kind": StepKind.FUNCTION, "status": StepStatus.COMPLETED, "attempts": 1} | changes
    return StepRecord(id=id, name=id, claim=claim, earlier=earlier, started_at=at(40), finished_at=at(41), **values)


async def spans_of(info: RunInfo, *steps: StepRecord) -> list[SpanRecord]:
    async def fetch(run_id: str) -> RunHistory:
        raise AssertionError(run_id)

    return await trace_of(RunHistory(info, steps), fetch)


async def test_an_attempt_that_was_lost_and_its_repetition_are_two_spans_of_two_stretches() -> None:
    lost = StepAttempt(1, at(2), at(32), LOST, "worker-1", 1)
    start, first, second, *attempts = await spans_of(run(), step("charge", 2, lost, worker_id="worker-2"))
    assert (start.name, start.parent_span_id) == ("start order", None)
    assert [(each.span_id, each.parent_span_id) for each in (first, second)] == [
        (f"{stretch_id(RUN, 1):016x}", start.span_id),
        (f"{stretch_id(RUN, 2):016x}", start.span_id),
    ]
    assert second.links == (SpanLink(first.trace_id, first.span_id),)
    assert [(each.span_id, each.parent_span_id, each.error is LOST) for each in attempts] == [
        (f"{attempt_id(RUN, 'charge', 1, 1):016x}", first.span_id, True),
        (f"{attempt_id(RUN, 'charge', 1, 2):016x}", second.span_id, False),
    ]
    assert (first.started_at, first.finished_at, second.finished_at) == (at(1), at(32), at(60))


async def test_what_has_not_ended_has_no_span() -> None:
    waiting = step("charge", 1, status=StepStatus.RUNNING)
    info = run(status=RunStatus.RUNNING, finished_at=None)
    assert [each.name for each in await spans_of(info, waiting)] == ["start order"]


@pytest.mark.parametrize(
    ("tracestate", "start"),
    [({}, None), ({"tracestate": start_state(0)}, None), ({"tracestate": start_state(7)}, f"{7:016x}")],
)
async def test_a_start_is_shown_again_if_it_was_a_span_of_a_client(tracestate: dict[str, str], start: str) -> None:
    context = f'{{"traceparent": "00-{TRACE}-{SPAN}-01"'.encode()
    context += b"".join(f', "{name}": "{value}"'.encode() for name, value in tracestate.items()) + b"}"
    spans = await spans_of(run(context=context), step("charge", 1))
    assert {each.trace_id for each in spans} == {TRACE}
    assert {each.parent_span_id for each in spans if each.name == "run order"} == {SPAN}
    starts = [(each.span_id, each.parent_span_id) for each in spans if each.name == "start order"]
    assert starts == ([(SPAN, start)] if tracestate else [])


async def test_a_fork_has_what_it_did_itself() -> None:
    spans = await spans_of(run(forked_from="other"), step("charge", 0), step("ship", 1))
    assert [each.name for each in spans] == ["run order", "run order", "step ship"]


@pytest.mark.parametrize("context", [b"not JSON", b"[1]", b'{"traceparent": 7}'])
async def test_a_context_that_names_no_trace_is_no_obstacle(context: bytes) -> None:
    (start, *_) = await spans_of(run(context=context), step("charge", 1))
    assert start.name == "start order"

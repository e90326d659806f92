"""Runs, steps and operations have the words of `kagzi --json`, and a few that only programs need."""

import json
from base64 import b64decode
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from kagzi.cli.runs.bulk import _view as cli_operation_view
from kagzi.cli.runs.views import run_view as cli_run_view
from kagzi.cli.runs.views import step_view as cli_step_view
from kagzi.cli.runs.views import whole_run_view as cli_whole_run_view
from kagzi.core.bulk import BulkOperation
from kagzi.core.error_details import ErrorDetail
from kagzi.core.records import Payload, RunFilter, RunKey, RunRecord, StepAttempt, StepRecord
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.schedules.scheduled_time import with_scheduled_time
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from kagzi.sdk.client.operations.bulk import _read_progress
from kagzi.sdk.client.run_records import read_run_info
from kagzi.sdk.client.step_records import read_step_record
from kagzi.server.http.page_data import PageData
from kagzi.server.http.views.operations import operation_view
from kagzi.server.http.views.runs import run_view, whole_run_view
from kagzi.server.http.views.steps import step_view
from kagzi.wire.bulk import write_bulk
from kagzi.wire.runs import write_run
from kagzi.wire.steps import write_step

AT = 1_794_821_405_123_456
URL = "http://127.0.0.1:8420/runs/x"
TRACE_URL = "https://traces.example.com/{trace_id}?from=kagzi"
DATA = cast("PageData", SimpleNamespace(info=SimpleNamespace(url_of=lambda run: URL, trace_url=TRACE_URL)))
ERROR = ErrorDetail(
    message="no bread",
    type="app.bakery.SoldOut",
    traceback="Traceback ...",
    metadata={"code": "404"},
    cause=ErrorDetail(message="closed", type="ValueError"),
)
RUN = RunRecord(
    run=RunKey("shop", "01a1e4b1-6372-7389-9d24-3c7f65a164cc"),
    workflow_id="order-1",
    workflow_type="order",
    status=RunStatus.SLEEPING,
    created_at=AT,
    last_seq=7,
    version="2",
    wait_reason=WaitReason.SIGNAL,
    attempt=2,
    started_at=AT + 1,
    wake_at=AT + 2,
    deadline_at=AT + 3,
    pause_requested=True,
    pause_reason="look",
    status_text="waits",
    progress=0.5,
    labels={"team": "a"},
    priority=3,
    parent_run_id="01a1e4b1-6372-7389-9d24-3c7f65a164cd",
    parent_step_id="child",
    schedule_id="nightly",
    concurrency_key="ada",
    forked_from="01a1e4b1-6372-7389-9d24-3c7f65a164ce",
    error=ERROR,
    problem=ERROR,
    worker_id="worker-1",
    cancel_requested=True,
    cancel_reason="enough",
    waits=("approve",),
    input=Payload(b'{"a": 1}'),
    output=Payload(b"\x00\x01", {"encoding": "binary/encrypted"}),
    context=with_scheduled_time(Payload(b'{"trace": "x"}'), AT),
)
BARE = RunRecord(
    run=RUN.run,
    workflow_id="order-1",
    workflow_type="order",
    status=RunStatus.PENDING,
    created_at=AT,
    last_seq=0,
    worker_id=None,
    cancel_requested=False,
)
STEP = StepRecord(
    run=RUN.run,
    step_id="a/b[3]#2",
    name="b",
    kind=StepKind.FUNCTION,
    status=StepStatus.FAILED,
    begun_seq=3,
    created_at=AT,
    attempt=2,
    seq=4,
    started_at=AT + 1,
    finished_at=AT + 2,
    parallel_group_id="a",
    worker_id="worker-1",
    retry=RetryPolicy(),
    error=ErrorDetail(message="x", type="ValueError", kind=ERROR.kind, non_retryable=True),
    output=Payload(b"[1]"),
    details=Payload(b'"half"'),
    attempts=(
        StepAttempt(
            attempt=1,
            started_at=AT,
            finished_at=AT + 1,
            error=ERROR,
            worker_id="worker-1",
            input=Payload(b'{"amount":5}'),
        ),
    ),
)
ONLY_HERE = {
    "run": {"cancel_reason", "last_seq"},
    "whole run": {"cancel_reason", "last_seq", "trace_id", "trace_url"},
    "step": {"begun_seq", "parent_step_id", "retry", "timeout_ms", "worker_id"},
    "operation": {"filter"},
}


def as_json(view: Any) -> Any:
    return json.loads(msgspec.json.encode(view))


def common(noun: str, shown: dict[str, Any]) -> dict[str, Any]:
    """Without what only programs need."""
    assert ONLY_HERE[noun] <= set(shown)
    return {name: value for name, value in shown.items() if name not in ONLY_HERE[noun]}


def with_sizes(shown: dict[str, Any]) -> dict[str, Any]:
    """Commands decode values, or say how many bytes they have; programs get the bytes (ADR 0071)."""
    encoded = {name: value for name, value in shown.items() if isinstance(value, dict) and "$bytes" in value}
    return {**shown, **{name: {**value, "$bytes": len(b64decode(value["$bytes"]))} for name, value in encoded.items()}}


def test_a_run() -> None:
    for record in (RUN, BARE):
        info = read_run_info(write_run(record, url=URL))
        assert common("run", without_causes(as_json(run_view(record, DATA)))) == without_causes(cli_run_view(info))
        whole = common("whole run", without_causes(as_json(whole_run_view(record, DATA))))
        assert with_sizes(whole) == without_causes(cli_whole_run_view(info))


def test_the_trace_of_a_run_has_a_link() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    named = Payload(msgspec.json.encode({"traceparent": f"00-{trace}-b7ad6b7169203331-01", "team": "a"}))
    view = whole_run_view(msgspec.structs.replace(RUN, context=named), DATA)
    assert (view.trace_id, view.trace_url) == (trace, f"https://traces.example.com/{trace}?from=kagzi")
    for data, metadata in ((b'{"traceparent": 7}', {}), (b"[1]", {}), (b"\xff", {}), (named.data, {"encoding": "aes"})):
        view = whole_run_view(msgspec.structs.replace(RUN, context=Payload(data, metadata)), DATA)
        assert (view.trace_id, view.trace_url) == (None, None)


def without_causes(shown: Any) -> Any:
    """The command line leaves the cause of an error out if there is none."""
    if isinstance(shown, dict):
        return {name: without_causes(value) for name, value in shown.items() if not (name == "cause" and value is None)}
    return [without_causes(each) for each in shown] if isinstance(shown, (list, tuple)) else shown


def test_a_step() -> None:
    printed = without_causes(cli_step_view(read_step_record(write_step(STEP))))
    assert common("step", without_causes(as_json(step_view(STEP)))) == printed


def test_an_operation() -> None:
    operation = BulkOperation(
        operation_id="01a1e4b1-6372-7389-9d24-3c7f65a164cc",
        namespace="shop",
        action="cancel",
        where=RunFilter(statuses=(RunStatus.PENDING,)),
        reason="enough",
        request_id="x",
        created_at=AT,
        matched=3,
        done=2,
        failed=1,
        last_error="run x: y",
        finished_at=AT + 1,
    )
    printed = cli_operation_view((operation.operation_id, _read_progress(write_bulk(operation))))
    assert common("operation", as_json(operation_view(operation))) == printed

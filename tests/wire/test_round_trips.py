"""What is written into a message, sent as bytes and read again is what it was."""

from typing import Any, TypeVar

import msgspec
import pytest
from google.protobuf.message import Message
from hypothesis import given, settings

from kagzi.core.error_details import ErrorDetail
from kagzi.core.errors import InvalidArgument
from kagzi.core.records import ClaimedRun, Lease, Payload, RunEnd, RunFilter, RunRecord, StepRecord, WorkerRecord
from kagzi.core.retry.policy import SERVER_DEFAULT, RetryPolicy
from kagzi.core.run.commands import StartRequest
from kagzi.v1 import common_pb2, worker_pb2, workflow_pb2
from kagzi.wire.common import (
    read_duration_ms,
    read_duration_us,
    read_error,
    read_lease,
    read_payload,
    read_retry,
    read_time,
    write_duration,
    write_error,
    write_lease,
    write_payload,
    write_retry,
    write_time,
)
from kagzi.wire.requests import read_outcome, write_filter, write_register, write_start
from kagzi.wire.runs import read_filter, read_start, write_outcome, write_run
from kagzi.wire.steps import write_step
from kagzi.wire.tasks import write_task
from kagzi.wire.workers import read_register, write_worker

from . import strategies as some
from .reading import read_run, read_step, read_task, read_worker

Message = TypeVar("Message", bound=Message)
few = settings(max_examples=40, deadline=None)


def posted(message: Message) -> Message:
    return type(message).FromString(message.SerializeToString())


def plain(value: Any) -> Any:
    """Structs with maps compare by what they hold, whatever kind of mapping it is."""
    return msgspec.to_builtins(value)


@few
@given(some.payloads)
def test_payloads(payload: Payload) -> None:
    assert read_payload(posted(write_payload(payload))) == payload


@few
@given(some.errors)
def test_errors(error: ErrorDetail) -> None:
    assert read_error(posted(write_error(error))) == error


@few
@given(some.retries)
def test_retry_policies(policy: RetryPolicy) -> None:
    assert read_retry(posted(write_retry(policy))) == policy


@few
@given(some.leases)
def test_leases(lease: Lease) -> None:
    assert read_lease(posted(write_lease(lease))) == lease


@few
@given(some.times)
def test_times(at: int) -> None:
    assert read_time(posted(write_time(at))) == at
    assert read_duration_us(posted(write_duration(at))) == at


@few
@given(some.claimed_runs)
def test_tasks(claimed: ClaimedRun) -> None:
    assert plain(read_task(posted(write_task(claimed)), worker_id="w")) == plain(claimed)


@few
@given(some.run_records)
def test_runs(record: RunRecord) -> None:
    assert plain(read_run(posted(write_run(record, url="")))) == plain(record)


@few
@given(some.run_endings)
def test_outcomes(end: RunEnd) -> None:
    assert read_outcome(posted(write_outcome(end)), namespace=end.run.namespace) == end


@few
@given(some.step_records)
def test_steps(record: StepRecord) -> None:
    assert plain(read_step(posted(write_step(record)))) == plain(record)


@few
@given(some.worker_records)
def test_workers(record: WorkerRecord) -> None:
    assert plain(read_worker(posted(write_worker(record)))) == plain(record)
    registered = read_register(posted(write_register(record)))
    assert (registered.worker_id, registered.namespace, registered.served, registered.max_concurrent) == (
        record.worker_id,
        record.namespace,
        record.served,
        record.max_concurrent,
    )


@few
@given(some.start_requests)
def test_starts(request: StartRequest) -> None:
    assert plain(read_start(posted(write_start(request)))) == plain(request)


@few
@given(some.run_filters)
def test_filters(where: RunFilter) -> None:
    message = workflow_pb2.ListWorkflowsRequest(filter=write_filter(where))
    assert plain(read_filter(posted(message))) == plain(where)


def test_a_policy_leaves_out_what_the_server_decides() -> None:
    assert read_retry(common_pb2.RetryPolicy()) == SERVER_DEFAULT
    five = read_retry(common_pb2.RetryPolicy(maximum_attempts=5))
    assert five == msgspec.structs.replace(SERVER_DEFAULT, maximum_attempts=5)


def test_parts_of_a_unit_round_up_so_that_nothing_is_early() -> None:
    message = write_duration(1)
    message.nanos += 1
    assert read_duration_us(message) == 2
    assert read_duration_ms(message) == 1


def test_a_nonce_no_claim_draws_fits_no_run() -> None:
    assert read_lease(common_pb2.Lease(counter=1, nonce=2**64 - 1)).nonce == 0


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (workflow_pb2.StartWorkflowRequest(workflow_type="t", on_conflict=9), "on_conflict"),  # type: ignore[arg-type]
    ],
)
def test_a_start_is_refused_for_what_nobody_would_honour(message: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        read_start(message)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (worker_pb2.RegisterRequest(workflow_types=["a"], queue_concurrency_limit=0), "queue_concurrency_limit"),
        (
            worker_pb2.RegisterRequest(
                workflow_types=["a"], workflow_type_concurrency=[worker_pb2.WorkflowTypeConcurrency(workflow_type="a")]
            ),
            "workflow_type_concurrency",
        ),
        (
            worker_pb2.RegisterRequest(
                workflow_types=["a"], served=[worker_pb2.WorkflowTypeVersion(workflow_type="b", version="2")]
            ),
            "workflow_types",
        ),
    ],
)
def test_a_registration_is_refused_for_what_nobody_would_honour(message: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        read_register(message)
    assert refusal.value.field == field


def test_types_without_versions_are_served_at_version_1() -> None:
    worker = read_register(worker_pb2.RegisterRequest(workflow_types=["a", "b"]))
    assert [(pair.workflow_type, pair.version) for pair in worker.served] == [("a", "1"), ("b", "1")]
    assert (worker.namespace, worker.max_concurrent) == ("default", 100)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (workflow_pb2.ListWorkflowsRequest(filter=workflow_pb2.WorkflowFilter(statuses=[42])), "statuses"),  # type: ignore[list-item]
        (
            workflow_pb2.ListWorkflowsRequest(
                status_filter=workflow_pb2.WORKFLOW_STATUS_FAILED,
                filter=workflow_pb2.WorkflowFilter(statuses=[workflow_pb2.WORKFLOW_STATUS_FAILED]),
            ),
            "status_filter",
        ),
    ],
)
def test_a_filter_is_refused_for_what_nobody_would_honour(message: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        read_filter(message)
    assert refusal.value.field == field

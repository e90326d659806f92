"""What a call meets on its way: errors mapped without a leak, limits, budgets, a proof where one is asked for."""

import logging
from typing import Any

import grpc
import pytest

from kagzi.core import errors, limits
from kagzi.core.ids import is_uuid
from kagzi.server.grpc.interceptor import PROOF_HEADER, Interceptor
from kagzi.server.grpc.services.workers import WorkerService
from kagzi.server.grpc.services.workflows import WorkflowService
from kagzi.system import SystemIds
from kagzi.v1 import admin_pb2, common_pb2, worker_pb2, workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.conftest import Serve, StartServer
from tests.server.stubs import TIMEOUT_S, Stubs, leased, refused

UNKNOWN = "01900000-0000-7000-8000-000000000000"

SECRET_TEXT = "password=hunter2"


class Raising:
    """A service whose methods raise."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def GetWorkflow(self, request: Any) -> Any:
        raise self._error

    async def WaitStream(self, context: Any) -> None:
        raise self._error


async def test_where_the_database_is_stays_in_the_log(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def use(stubs: Stubs) -> None:
        request = workflow_pb2.GetWorkflowRequest(run_id="x")
        failure = await refused(stubs.workflows.GetWorkflow(request, timeout=TIMEOUT_S))
        assert failure.code() is grpc.StatusCode.UNAVAILABLE
        assert "db-7" not in str(failure) + str(failure.trailing_metadata())
        assert isinstance(from_rpc_error(failure), errors.Unavailable)

    interceptor = Interceptor(ids=SystemIds())
    away = Raising(errors.Unavailable("db-7.internal/billing refused the connection"))
    with caplog.at_level(logging.WARNING):
        await serve({"kagzi.v1.WorkflowService": away}, interceptor, use)
    assert "db-7.internal/billing" in caplog.text


@pytest.mark.parametrize("error", [RuntimeError(SECRET_TEXT), errors.InternalError(SECRET_TEXT), KeyError(SECRET_TEXT)])
async def test_an_unexpected_error_leaks_nothing_and_is_logged_under_its_number(
    error: Exception, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(stubs: Stubs) -> None:
        unary = await refused(stubs.workflows.GetWorkflow(workflow_pb2.GetWorkflowRequest(), timeout=TIMEOUT_S))
        waits = stubs.workflows.WaitStream(timeout=TIMEOUT_S)
        await waits.write(workflow_pb2.WaitStreamRequest())
        stream = await refused(waits.read())
        for failure in (unary, stream):
            assert failure.code() is grpc.StatusCode.INTERNAL
            assert (
                SECRET_TEXT not in f"{failure.details()} {failure.trailing_metadata()} {failure.debug_error_string()}"
            )
            raised = from_rpc_error(failure)
            assert isinstance(raised, errors.InternalError)
            assert is_uuid(raised.metadata["incident"])
            assert raised.metadata["incident"] in caplog.text

    with caplog.at_level(logging.ERROR):
        await serve({"kagzi.v1.WorkflowService": Raising(error)}, Interceptor(ids=SystemIds()), use)
    assert SECRET_TEXT in caplog.text  # whoever runs the server is told


async def test_our_own_errors_arrive_with_their_details(serve: Serve) -> None:
    async def use(stubs: Stubs) -> None:
        failure = await refused(stubs.workflows.GetWorkflow(workflow_pb2.GetWorkflowRequest(), timeout=TIMEOUT_S))
        raised = from_rpc_error(failure)
        assert isinstance(raised, errors.ResourceExhausted)
        assert raised.metadata == {"limit": "open_runs"}

    error = errors.ResourceExhausted("full", metadata={"limit": "open_runs"})
    await serve({"kagzi.v1.WorkflowService": Raising(error)}, Interceptor(ids=SystemIds()), use)


async def test_bytes_that_are_no_message_are_the_callers_mistake(memory_stubs: Stubs) -> None:
    call = memory_stubs.channel.unary_unary("/kagzi.v1.WorkflowService/StartWorkflow")
    failure = await refused(call(b"\xff\xff\xff\xff", timeout=TIMEOUT_S))
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "kagzi.v1.StartWorkflowRequest" in (failure.details() or "")


async def test_a_message_over_the_limit_is_refused_with_the_limit_named(memory_stubs: Stubs) -> None:
    big = common_pb2.Payload(data=b"x" * (limits.MESSAGE_HARD_BYTES + 1))
    failure = await refused(memory_stubs.start(input=big))
    assert failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    raised = from_rpc_error(failure)
    assert str(limits.MESSAGE_HARD_BYTES) in raised.message
    assert raised.metadata["limit"] == "message_bytes"
    far_too_big = common_pb2.Payload(data=b"x" * (2 * limits.MESSAGE_HARD_BYTES))
    assert (await refused(memory_stubs.start(input=far_too_big))).code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_payload_over_the_limit_is_refused_and_nothing_is_started(memory_stubs: Stubs) -> None:
    failure = await refused(memory_stubs.start(input=common_pb2.Payload(data=b"x" * (limits.PAYLOAD_BYTES + 1))))
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "input" in (failure.details() or "")
    listed = await memory_stubs.workflows.ListWorkflows(workflow_pb2.ListWorkflowsRequest(), timeout=TIMEOUT_S)
    assert not listed.workflows


async def test_the_largest_payloads_are_served(memory_stubs: Stubs) -> None:
    data = b"1" * limits.PAYLOAD_BYTES
    started = await memory_stubs.start(
        input=common_pb2.Payload(data=data), context=common_pb2.Payload(data=data[: limits.MIB])
    )
    large = grpc.aio.insecure_channel(
        memory_stubs.address, options=[("grpc.max_receive_message_length", 16 * limits.MIB)]
    )
    async with large as channel:
        run = await Stubs(channel).get(started.run_id)
    assert len(run.input.data) == limits.PAYLOAD_BYTES


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda s: s.start(task_queue="k\0"), "task_queue"),
        (lambda s: s.start(concurrency_key="k\0"), "concurrency_key"),
        (lambda s: s.start(priority=101), "priority"),
        (lambda s: s.start(labels={"a": "\0"}), "labels[a]"),
        (lambda s: s.poll("w", max_tasks=101), "max_tasks"),
        (lambda s: s.poll("w", max_tasks=-1), "max_tasks"),
        (
            lambda s: s.workflows.ListWorkflows(
                workflow_pb2.ListWorkflowsRequest(page=common_pb2.PageRequest(page_size=1_001))
            ),
            "page_size",
        ),
        (
            lambda s: s.workflows.ListWorkflows(
                workflow_pb2.ListWorkflowsRequest(page=common_pb2.PageRequest(page_token="forged"))
            ),
            "page_token",
        ),
        (lambda s: s.workers.Park(worker_pb2.ParkRequest(run_id="r")), "lease"),
        (lambda s: s.admin.ListSteps(admin_pb2.ListStepsRequest()), "run_id"),
        (lambda s: s.admin.GetTimeline(admin_pb2.GetTimelineRequest(run_id=UNKNOWN, size=2_001)), "size"),
        (lambda s: s.admin.GetTimeline(admin_pb2.GetTimelineRequest(run_id=UNKNOWN, after=1, around="a")), "around"),
    ],
)
async def test_what_is_not_supported_names_its_field(memory_stubs: Stubs, call: Any, field: str) -> None:
    failure = await refused(call(memory_stubs))
    raised = from_rpc_error(failure)
    assert isinstance(raised, errors.InvalidArgument), failure
    assert raised.field == field


async def test_polls_and_streams_do_not_eat_the_budget_of_calls(serve: Serve) -> None:
    interceptor = Interceptor(ids=SystemIds())
    interceptor.budgets.polls.limit = 1
    interceptor.budgets.calls.limit = 1
    interceptor.budgets.streams.limit = 1
    for budget in (interceptor.budgets.polls, interceptor.budgets.streams):
        budget.share = 1
        budget.take("default")

    async def use(stubs: Stubs) -> None:
        poll = await refused(stubs.poll("w"))
        assert poll.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert from_rpc_error(poll).metadata["limit"] == "long_polls"
        session = stubs.workers.Session(timeout=TIMEOUT_S)
        await session.write(worker_pb2.SessionRequest(hello=worker_pb2.SessionHello()))
        stream = await refused(session.read())
        assert from_rpc_error(stream).metadata["limit"] == "streams"
        failure = await refused(stubs.workflows.GetWorkflow(workflow_pb2.GetWorkflowRequest(), timeout=TIMEOUT_S))
        assert failure.code() is grpc.StatusCode.NOT_FOUND  # served

    services = {
        "kagzi.v1.WorkflowService": Raising(errors.NotFound("no")),
        "kagzi.v1.WorkerService": object.__new__(WorkerService),
    }
    await serve(services, interceptor, use)


async def test_a_closed_interceptor_answers_with_what_clients_retry(serve: Serve) -> None:
    interceptor = Interceptor(ids=SystemIds())
    interceptor.close()

    async def use(stubs: Stubs) -> None:
        failure = await refused(stubs.start())
        assert failure.code() is grpc.StatusCode.UNAVAILABLE
        assert isinstance(from_rpc_error(failure), errors.Unavailable)

    await serve({"kagzi.v1.WorkflowService": object.__new__(WorkflowService)}, interceptor, use)


async def test_a_server_with_a_secret_serves_only_who_knows_it(start_server: StartServer) -> None:
    server = await start_server(secret="s3cret")
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        stubs = Stubs(channel)
        assert (await refused(stubs.start())).code() is grpc.StatusCode.PERMISSION_DENIED
        request = workflow_pb2.StartWorkflowRequest(workflow_type="greet")
        for proof in ("s3cre", "s3cret2", ""):
            wrong = stubs.workflows.StartWorkflow(request, metadata=((PROOF_HEADER, proof),), timeout=TIMEOUT_S)
            assert (await refused(wrong)).code() is grpc.StatusCode.PERMISSION_DENIED
        session = stubs.workers.Session(timeout=TIMEOUT_S)
        assert (await refused(session.read())).code() is grpc.StatusCode.PERMISSION_DENIED
        right = await stubs.workflows.StartWorkflow(request, metadata=((PROOF_HEADER, "s3cret"),), timeout=TIMEOUT_S)
        assert right.run_id


async def test_a_foreign_namespace_sees_nothing(memory_stubs: Stubs) -> None:
    task = await memory_stubs.claim()
    other = workflow_pb2.GetWorkflowRequest(namespace_id="other", run_id=task.run_id)
    failure = await refused(memory_stubs.workflows.GetWorkflow(other, timeout=TIMEOUT_S))
    missing = workflow_pb2.GetWorkflowRequest(run_id="00000000-0000-7000-8000-000000000000")
    assert failure.code() is grpc.StatusCode.NOT_FOUND
    assert (await refused(memory_stubs.workflows.GetWorkflow(missing))).code() is grpc.StatusCode.NOT_FOUND
    complete = worker_pb2.CompleteWorkflowRequest(namespace_id="other", **leased(task))
    assert (await refused(memory_stubs.workers.CompleteWorkflow(complete))).code() is grpc.StatusCode.NOT_FOUND

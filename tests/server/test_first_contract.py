"""Fields of the first contract mean what it says, are refused, or are said to have no effect."""

from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from google.protobuf.duration_pb2 import Duration

from kagzi import Kagzi
from kagzi.core.errors import InvalidArgument, LeaseLost
from kagzi.core.records import Lease, RunKey, RunLease
from kagzi.server.config import AUTH_KEYS
from kagzi.server.grpc.connections import IDLE_S, Connections
from kagzi.v1 import admin_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2, workflow_schedule_pb2_grpc
from tests.server.conftest import ANY_PORT, QUICK, StartServer, channel_to
from tests.server.keys import first_key
from tests.server.stubs import TIMEOUT_S, Stubs, leased, refused
from tests.support.transports import GRPC, WEBSOCKET


async def test_a_poll_of_a_queue_gets_that_type_only(memory_stubs: Stubs) -> None:
    worker_id = await memory_stubs.register("greet", "other")
    other = await memory_stubs.start("other")
    fields = {"task_queue": "greet", "workflow_types": ["greet", "other"], "wait": Duration()}
    assert (await memory_stubs.poll(worker_id, **fields)).run_id == ""
    greet = await memory_stubs.start("greet")
    assert (await memory_stubs.poll(worker_id, **fields)).run_id == greet.run_id
    assert (await memory_stubs.poll(worker_id, workflow_types=["greet", "other"])).run_id == other.run_id


async def test_a_sleep_may_be_named_instead_of_numbered(memory_stubs: Stubs) -> None:
    task = await memory_stubs.claim()
    request = worker_pb2.SleepRequest(**leased(task), step_name="wait-for-cooldown", duration=Duration(seconds=3600))
    response = await memory_stubs.workers.Sleep(request, timeout=TIMEOUT_S)
    assert response.parked
    assert list((await memory_stubs.get(task.run_id)).waits) == ["wait-for-cooldown"]


async def test_a_task_queue_is_kept_and_shown_and_has_no_effect(stubs: Stubs) -> None:
    started = await stubs.start("greet", task_queue="orders")
    assert "task_queue has no effect" in started.warning
    run = await stubs.get(started.run_id)
    assert (run.workflow_type, run.task_queue) == ("greet", "orders")
    fork = workflow_pb2.ForkWorkflowRequest(run_id=started.run_id, request_id="fork")
    forked = await stubs.get((await stubs.workflows.ForkWorkflow(fork, timeout=TIMEOUT_S)).run_id)
    assert forked.task_queue == "orders"

    registering = worker_pb2.RegisterRequest(workflow_types=["greet", "other"], task_queue="elsewhere")
    worker_id = (await stubs.workers.Register(registering, timeout=TIMEOUT_S)).worker_id
    assert (await stubs.poll(worker_id, task_queue="anything")).run_id == started.run_id

    plain = await stubs.start("greet", task_queue="greet")
    assert "task_queue" not in plain.warning
    assert (await stubs.get(plain.run_id)).task_queue == "greet"


async def test_a_task_queue_of_a_schedule_has_no_effect(stubs: Stubs) -> None:
    schedules: Any = workflow_schedule_pb2_grpc.WorkflowScheduleServiceStub(stubs.channel)
    create = workflow_schedule_pb2.CreateWorkflowScheduleRequest(
        schedule_id="s", workflow_type="greet", cron_expr="0 6 * * *", task_queue="orders"
    )
    assert "task_queue has no effect" in (await schedules.CreateWorkflowSchedule(create, timeout=TIMEOUT_S)).warning
    update = workflow_schedule_pb2.UpdateWorkflowScheduleRequest(schedule_id="s", task_queue="greet")
    assert "task_queue" not in (await schedules.UpdateWorkflowSchedule(update, timeout=TIMEOUT_S)).warning


async def test_a_step_is_found_without_its_run(stubs: Stubs) -> None:
    task = await stubs.claim()
    for name in ("charge", "ship"):
        await stubs.workers.BeginStep(worker_pb2.BeginStepRequest(**leased(task), step_name=name), timeout=TIMEOUT_S)

    async def get(step_id: str) -> str:
        request = admin_pb2.GetStepRequest(step_id=step_id)
        return (await stubs.admin.GetStep(request, timeout=TIMEOUT_S)).step.run_id

    assert await get("charge") == await get(f"{task.run_id}/charge") == task.run_id
    other = await stubs.claim()
    await stubs.workers.BeginStep(worker_pb2.BeginStepRequest(**leased(other), step_name="charge"), timeout=TIMEOUT_S)
    ambiguous = await refused(get("charge"))
    assert ambiguous.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "several runs have a step charge" in str(ambiguous.details())
    assert await get("ship") == task.run_id
    assert await get(f"{other.run_id}/charge") == other.run_id
    assert (await refused(get("nothing"))).code() is grpc.StatusCode.NOT_FOUND
    elsewhere = admin_pb2.GetStepRequest(step_id="ship", namespace_id="elsewhere")
    assert (await refused(stubs.admin.GetStep(elsewhere, timeout=TIMEOUT_S))).code() is grpc.StatusCode.NOT_FOUND


async def test_a_message_without_namespace_is_in_that_of_its_connection(memory_stubs: Stubs) -> None:
    stubs = memory_stubs
    register = worker_pb2.RegisterRequest(namespace_id="shop", workflow_types=["greet"])
    worker_id = (await stubs.workers.Register(register, timeout=TIMEOUT_S)).worker_id
    run_id = (await stubs.start()).run_id
    assert (await stubs.get(run_id)).namespace_id == "shop"
    task = await stubs.poll(worker_id)
    assert task.run_id == run_id
    begin = worker_pb2.BeginStepRequest(run_id=run_id, step_name="charge")
    assert (await stubs.workers.BeginStep(begin, timeout=TIMEOUT_S)).should_execute
    steps = await stubs.admin.ListSteps(admin_pb2.ListStepsRequest(run_id=run_id), timeout=TIMEOUT_S)
    assert [step.namespace_id for step in steps.steps] == ["shop"]

    named = worker_pb2.RegisterRequest(namespace_id="other", workflow_types=["greet"])
    other_id = (await stubs.workers.Register(named, timeout=TIMEOUT_S)).worker_id
    assert "several namespaces" in str((await refused(stubs.start())).details())
    for each, namespace in ((worker_id, "shop"), (other_id, "other")):
        get = admin_pb2.GetWorkerRequest(worker_id=each)
        assert (await stubs.admin.GetWorker(get, timeout=TIMEOUT_S)).worker.namespace_id == namespace
    end = worker_pb2.CompleteWorkflowRequest(run_id=run_id)
    ended = await stubs.workers.CompleteWorkflow(end, timeout=TIMEOUT_S)
    assert ended.status == workflow_pb2.WORKFLOW_STATUS_COMPLETED


async def test_two_workers_that_share_a_connection_name_their_leases(start_server: StartServer, transport: str) -> None:
    """A proxy may put the calls of many workers on one connection: nobody could tell a ghost from its successor."""
    settings = msgspec.structs.replace(QUICK, lease_ms=1_000)
    server = await start_server(http=ANY_PORT if transport == WEBSOCKET else None, settings=settings)
    async with channel_to(server, transport) as channel:
        stubs = Stubs(channel)
        first_id, second_id = await stubs.register(), await stubs.register()
        run_id = (await stubs.start()).run_id
        first = await stubs.poll(first_id)
        taken_over = await stubs.poll(second_id)  # when the lease of the first one has ended
        assert (first.run_id, taken_over.run_id) == (run_id, run_id)
        end = worker_pb2.CompleteWorkflowRequest(run_id=run_id)
        shared = await refused(stubs.workers.CompleteWorkflow(end, timeout=TIMEOUT_S))
        assert shared.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "several workers" in str(shared.details())
        ghost = worker_pb2.CompleteWorkflowRequest(**leased(first))
        refusal = await refused(stubs.workers.CompleteWorkflow(ghost, timeout=TIMEOUT_S))
        assert refusal.code() is grpc.StatusCode.ABORTED
        end = worker_pb2.CompleteWorkflowRequest(**leased(taken_over))
        assert (await stubs.workers.CompleteWorkflow(end, timeout=TIMEOUT_S)).status


def test_a_worker_that_names_leases_gives_up_what_it_does_not_name() -> None:
    run, connections = RunKey("default", "r"), Connections()
    for name in ("ipv4:1", "ipv4:2"):
        connections.registered(name, "default", "w")
        connections.polled(name, "w", [RunLease(run, Lease(1, 1))])
        assert len(connections.leased_by(name, "default", "w", 0)) == 1
    connections.names_leases("ipv4:1", run=run)
    connections.names_leases("ipv4:2", worker_id="w")
    assert connections.leased_by("ipv4:1", "default", "w", 0) == []
    assert connections.leased_by("ipv4:2", "default", "w", 0) == []


def test_a_run_whose_retry_its_worker_does_not_begin_is_not_kept() -> None:
    run, connections = RunKey("default", "r"), Connections()
    connections.registered("ipv4:1", "default", "w")
    connections.polled("ipv4:1", "w", [RunLease(run, Lease(1, 1))])
    connections.retry_due("ipv4:1", run, 100)
    assert len(connections.leased_by("ipv4:1", "default", "w", 100)) == 1
    assert connections.leased_by("ipv4:1", "default", "w", 101) == []
    connections.retry_due("ipv4:1", run, None)
    assert len(connections.leased_by("ipv4:1", "default", "w", 101)) == 1


def test_what_is_known_of_connections_is_bounded() -> None:
    now_s = 0.0
    connections = Connections(lambda: now_s, limit=10)
    for number in range(20):
        connections.registered(f"ipv4:{number}", "shop", "w")
        run = RunKey("shop", str(number))
        connections.polled(f"ipv4:{number}", "w", [RunLease(run, Lease(number, 1))])
    assert connections.namespace_of("ipv4:14", None) == ""
    assert connections.lease_of("ipv4:19", run) == Lease(19, 1)
    connections.polled("ipv4:19", "w", [RunLease(RunKey("shop", f"r{number}"), Lease(1, 1)) for number in range(30)])
    assert connections.lease_of("ipv4:19", RunKey("shop", "r29"))
    with pytest.raises(LeaseLost, match="not polled on this connection"):
        connections.lease_of("ipv4:19", RunKey("shop", "r0"))
    now_s = IDLE_S + 1
    with pytest.raises(InvalidArgument, match="nothing was polled"):  # the name may belong to another connection now
        connections.lease_of("ipv4:19", RunKey("shop", "r29"))
    assert len(connections._connections) == 0
    assert connections._size == 0


def test_callers_on_a_unix_socket_name_their_leases() -> None:
    connections = Connections()
    connections.polled("unix:", "w", [RunLease(RunKey("shop", "r"), Lease(1, 1))])
    with pytest.raises(InvalidArgument, match="cannot be told apart"):
        connections.lease_of("unix:", RunKey("shop", "r"))


@pytest.mark.parametrize("of_shop", [True, False])
async def test_the_namespace_comes_from_the_key(start_server: StartServer, tmp_path: Path, of_shop: bool) -> None:
    """Of a key for one namespace, whatever the connection has named."""
    url = f"sqlite:///{tmp_path}/kagzi.db"
    first = await first_key(url)
    server = await start_server(url, auth=AUTH_KEYS)
    async with Kagzi.connect(server.grpc_address, namespace="shop", api_key=first) as operator:
        everywhere = {} if of_shop else {"everywhere": True}
        key = (await operator.keys.create("k", scopes=["worker", "client"], **everywhere)).key
    metadata = (("authorization", f"Bearer {key}"),)
    async with channel_to(server, GRPC) as channel:
        stubs = Stubs(channel)
        register = worker_pb2.RegisterRequest(workflow_types=["greet"])
        worker_id = (await stubs.workers.Register(register, metadata=metadata, timeout=TIMEOUT_S)).worker_id
        start = workflow_pb2.StartWorkflowRequest(workflow_type="greet")
        run_id = (await stubs.workflows.StartWorkflow(start, metadata=metadata, timeout=TIMEOUT_S)).run_id
        get = workflow_pb2.GetWorkflowRequest(run_id=run_id)
        run = (await stubs.workflows.GetWorkflow(get, metadata=metadata, timeout=TIMEOUT_S)).workflow
        assert run.namespace_id == ("shop" if of_shop else "default")
        poll = worker_pb2.PollTaskRequest(worker_id=worker_id)
        assert (await stubs.workers.PollTask(poll, metadata=metadata, timeout=TIMEOUT_S)).run_id == run_id
        end = worker_pb2.CompleteWorkflowRequest(run_id=run_id)
        assert (await stubs.workers.CompleteWorkflow(end, metadata=metadata, timeout=TIMEOUT_S)).status
        stranger = await refused(stubs.workers.CompleteWorkflow(end, timeout=TIMEOUT_S))
        assert stranger.code() is grpc.StatusCode.UNAUTHENTICATED

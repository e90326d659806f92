"""Signals, children, pause, terminate, retry, fork, count, explain: each call of the contract, through a server, on
each store."""

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from kagzi.v1 import common_pb2, worker_pb2, workflow_pb2
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload, leased, refused

PENDING = workflow_pb2.WORKFLOW_STATUS_PENDING
RUNNING = workflow_pb2.WORKFLOW_STATUS_RUNNING
SLEEPING = workflow_pb2.WORKFLOW_STATUS_SLEEPING
PAUSED = workflow_pb2.WORKFLOW_STATUS_PAUSED
COMPLETED = workflow_pb2.WORKFLOW_STATUS_COMPLETED
FAILED = workflow_pb2.WORKFLOW_STATUS_FAILED
CANCELLED = workflow_pb2.WORKFLOW_STATUS_CANCELLED


class Calls:
    """The calls by name, with their fields."""

    def __init__(self, stubs: Stubs) -> None:
        self.stubs = stubs

    async def workflow(self, name: str, **fields: Any) -> Any:
        request = getattr(workflow_pb2, f"{name}Request")(**fields)
        return await getattr(self.stubs.workflows, name)(request, timeout=TIMEOUT_S)

    async def worker(self, name: str, **fields: Any) -> Any:
        request = getattr(worker_pb2, f"{name}Request")(**fields)
        return await getattr(self.stubs.workers, name)(request, timeout=TIMEOUT_S)

    async def step(self, task: Any, step_id: str, output: str) -> None:
        await self.worker("BeginStep", **leased(task), step_name=step_id)
        await self.worker("CompleteStep", **leased(task), step_id=step_id, output=json_payload(output))

    async def complete(self, task: Any, output: str = "null") -> None:
        await self.worker("CompleteWorkflow", **leased(task), output=json_payload(output))

    async def outcome(self, run_id: str) -> workflow_pb2.RunOutcome:
        return (await self.workflow("Wait", run_id=run_id)).outcome


@pytest.fixture
def calls(stubs: Stubs) -> Calls:
    return Calls(stubs)


# --- signals ----------------------------------------------------------------------------------------------------------


async def test_a_signal_wakes_the_run_that_waits_for_it(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = (await stubs.start(workflow_id="order-1")).run_id
    task = await stubs.poll(worker_id)
    waiting = await calls.worker("WaitSignal", **leased(task), step_id="approved", signal_name="approved")
    assert (waiting.received, waiting.timed_out) == (False, False)
    run = await stubs.get(run_id)
    assert (run.status, run.wait_reason) == (SLEEPING, workflow_pb2.WAIT_REASON_SIGNAL)
    assert list(run.waits) == ["approved"]
    early = await calls.workflow(
        "SignalWorkflow", workflow_id="order-1", signal_name="other", payload=json_payload("1"), request_id="r1"
    )
    assert (early.delivered, early.run_id) == (False, run_id)
    for _ in range(2):  # the second is the first, repeated
        signal = {"signal_name": "approved", "payload": json_payload("true"), "request_id": "r2"}
        await calls.workflow("SignalWorkflow", run_id=run_id, **signal)
    woken = await stubs.poll(worker_id)
    assert woken.run_id == run_id
    known = await calls.worker("WaitSignal", **leased(woken), step_id="approved", signal_name="approved")
    assert (known.received, known.payload.data) == (True, b"true")
    buffered = await calls.worker("WaitSignal", **leased(woken), step_id="other", signal_name="other")
    assert (buffered.received, buffered.payload.data) == (True, b"1")
    await calls.complete(woken)
    late = await refused(calls.workflow("SignalWorkflow", run_id=run_id, signal_name="approved"))
    assert late.code() is grpc.StatusCode.FAILED_PRECONDITION
    nobody = await refused(calls.workflow("SignalWorkflow", workflow_id="order-2", signal_name="approved"))
    assert nobody.code() is grpc.StatusCode.NOT_FOUND


async def test_a_wait_has_an_end(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    await stubs.start()
    task = await stubs.poll(worker_id)
    wait = {"step_id": "ok", "signal_name": "ok", "timeout": Duration(nanos=100_000_000)}
    first = await calls.worker("WaitSignal", **leased(task), **wait)
    if not first.timed_out:
        task = await stubs.poll(worker_id)
        first = await calls.worker("WaitSignal", **leased(task), **wait)
    assert (first.received, first.timed_out) == (False, True)


async def test_signal_with_start(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    start = workflow_pb2.StartWorkflowRequest(workflow_type="greet", workflow_id="cart-1")
    first = await calls.workflow("SignalWithStart", start=start, signal_name="add", payload=json_payload("1"))
    second = await calls.workflow("SignalWithStart", start=start, signal_name="add", payload=json_payload("2"))
    assert (first.started.already_exists, second.started.already_exists) == (False, True)
    assert first.started.run_id == second.started.run_id
    task = await stubs.poll(worker_id)
    for step_id, data in (("add", b"1"), ("add#2", b"2")):
        got = await calls.worker("WaitSignal", **leased(task), step_id=step_id, signal_name="add")
        assert (got.received, got.payload.data) == (True, data)


# --- children ---------------------------------------------------------------------------------------------------------


async def test_a_child_s_result_comes_to_its_parent(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register("greet", "bill")
    parent_id = (await stubs.start()).run_id
    parent = await stubs.poll(worker_id, workflow_types=["greet"])
    start = workflow_pb2.StartWorkflowRequest(workflow_type="bill", workflow_id="bill-1", input=json_payload("5"))
    child = await calls.worker("StartChild", **leased(parent), step_id="bill", start=start)
    again = await calls.worker("StartChild", **leased(parent), step_id="bill", start=start)
    assert (child.already_exists, again.already_exists) == (False, True)
    assert again.child_run_id == child.child_run_id
    taken = await refused(calls.worker("StartChild", **leased(parent), step_id="bill#2", start=start))
    assert taken.code() is grpc.StatusCode.ALREADY_EXISTS
    parked = await calls.worker("Park", **leased(parent), waits=["bill"], known_seq=99)
    assert parked.parked
    task = await stubs.poll(worker_id, workflow_types=["bill"])
    assert (task.run_id, task.input.data) == (child.child_run_id, b"5")
    assert task.tasks[0].parent_run_id == parent_id
    await calls.complete(task, "7")
    woken = await stubs.poll(worker_id, workflow_types=["greet"])
    (result,) = [step for step in woken.tasks[0].history.steps if step.step_id == "bill"]
    assert (result.output.data, result.child_run_id) == (b"7", child.child_run_id)
    run = await stubs.get(child.child_run_id)
    assert (run.parent_run_id, run.parent_step_id) == (parent_id, "bill")
    listed = await calls.workflow("ListWorkflows", filter=workflow_pb2.WorkflowFilter(parent_run_id=parent_id))
    assert [child_run.run_id for child_run in listed.workflows] == [child.child_run_id]


async def test_children_end_with_their_parent(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    await stubs.start()
    parent = await stubs.poll(worker_id)
    children = []
    for number, policy in enumerate((worker_pb2.PARENT_CLOSE_POLICY_CANCEL, worker_pb2.PARENT_CLOSE_POLICY_ABANDON)):
        start = workflow_pb2.StartWorkflowRequest(workflow_type="bill")
        child = await calls.worker("StartChild", **leased(parent), step_id=f"b{number}", start=start, on_close=policy)
        children.append(child.child_run_id)
    await calls.complete(parent)
    assert (await calls.outcome(children[0])).status == CANCELLED
    assert (await stubs.get(children[1])).status == PENDING


async def test_what_a_child_cannot_be_is_refused(calls: Calls, stubs: Stubs) -> None:
    """The refusal is the result of the step: each start has a step of its own, and a repeat gets what is recorded."""
    task = await stubs.claim()
    accepted = workflow_pb2.StartWorkflowRequest(workflow_type="bill")
    for start, field in (
        ({"workflow_type": ""}, "workflow_type"),
        ({"workflow_type": "bill", "namespace_id": "other"}, "namespace_id"),
        ({"workflow_type": "bill", "priority": 1_000}, "priority"),
    ):
        for request in (workflow_pb2.StartWorkflowRequest(**start), accepted):
            refusal = await refused(calls.worker("StartChild", **leased(task), step_id=field, start=request))
            assert refusal.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert field in (refusal.details() or "")
    children = workflow_pb2.WorkflowFilter(parent_run_id=task.run_id)
    assert not (await calls.workflow("ListWorkflows", filter=children)).workflows


# --- control ----------------------------------------------------------------------------------------------------------


async def test_pause_and_resume(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = (await stubs.start()).run_id
    assert (await calls.workflow("PauseWorkflow", run_id=run_id)).status == PAUSED
    assert (await stubs.poll(worker_id, wait=Duration(nanos=50_000_000))).run_id == ""
    assert (await calls.workflow("ResumeWorkflow", run_id=run_id)).status == PENDING
    task = await stubs.poll(worker_id)
    assert task.run_id == run_id
    assert (await calls.workflow("PauseWorkflow", run_id=run_id)).status == RUNNING
    assert (await stubs.get(run_id)).pause_requested
    assert (await calls.worker("Release", **leased(task))).status == PAUSED
    assert not (await stubs.get(run_id)).pause_requested


async def test_terminate(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = (await stubs.start(workflow_id="bad")).run_id
    task = await stubs.poll(worker_id)
    assert (await calls.workflow("TerminateWorkflow", workflow_id="bad", reason="no more")).status == CANCELLED
    outcome = await calls.outcome(run_id)
    assert (outcome.status, outcome.error.kind) == (CANCELLED, common_pb2.ERROR_KIND_TERMINATED)
    lost = await refused(calls.worker("BeginStep", **leased(task), step_name="more"))
    assert lost.code() is grpc.StatusCode.ABORTED


async def test_after_a_cancellation_no_step_begins(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = (await stubs.start()).run_id
    task = await stubs.poll(worker_id)
    await calls.workflow("CancelWorkflow", run_id=run_id)
    refusal = await refused(calls.worker("BeginStep", **leased(task), step_name="more"))
    assert refusal.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "cancel" in (refusal.details() or "")


async def failed(calls: Calls, stubs: Stubs, worker_id: str) -> str:
    run_id = (await stubs.start()).run_id
    task = await stubs.poll(worker_id)
    await calls.step(task, "one", "1")
    await calls.step(task, "two", "2")
    error = common_pb2.ErrorDetail(message="boom", type="ValueError", subject="step", subject_id="two")
    await calls.worker("FailWorkflow", **leased(task), error=error)
    return run_id


async def test_retry(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = await failed(calls, stubs, worker_id)
    assert (await calls.workflow("RetryWorkflow", run_id=run_id)).status == PENDING
    task = await stubs.poll(worker_id)
    assert [step.step_id for step in task.tasks[0].history.steps if step.seq] == ["one"]
    assert (await calls.worker("BeginStep", **leased(task), step_name="two")).should_execute
    await calls.complete(task)
    again = await refused(calls.workflow("RetryWorkflow", run_id=run_id))
    assert again.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_wake(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = (await stubs.start()).run_id
    task = await stubs.poll(worker_id)
    await calls.worker("Sleep", **leased(task), step_id="nap", duration=Duration(seconds=86_400))
    woken = await calls.workflow("WakeStep", run_id=run_id, step_id="nap", request_id="once")
    assert (woken.status, woken.woken, woken.step_id, woken.run_id) == (PENDING, True, "nap", run_id)
    assert woken.due_at.seconds > 0
    assert await calls.workflow("WakeStep", run_id=run_id, request_id="once") == woken
    task = await stubs.poll(worker_id)
    assert [step.step_id for step in task.tasks[0].history.steps if step.seq] == ["nap"]
    await calls.complete(task)
    ended = await refused(calls.workflow("WakeStep", run_id=run_id, step_id="nap"))
    assert ended.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_fork(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = await failed(calls, stubs, worker_id)
    fork = {"from_step": "two", "outputs": {"one": json_payload("11")}, "workflow_id": "fork-1", "request_id": "f1"}
    forked = await calls.workflow("ForkWorkflow", run_id=run_id, **fork)
    assert (await calls.workflow("ForkWorkflow", run_id=run_id, **fork)).run_id == forked.run_id
    assert forked.workflow_id == "fork-1"
    task = await stubs.poll(worker_id)
    assert [(step.step_id, step.output.data) for step in task.tasks[0].history.steps] == [("one", b"11")]
    assert (await stubs.get(forked.run_id)).forked_from == run_id
    unknown = await refused(calls.workflow("ForkWorkflow", run_id=run_id, from_step="never"))
    assert unknown.code() in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION)


# --- looking ----------------------------------------------------------------------------------------------------------


async def test_count(calls: Calls, stubs: Stubs) -> None:
    for workflow_type in ("greet", "greet", "bill"):
        await stubs.start(workflow_type)
    counted = await calls.workflow("CountWorkflows")
    assert (counted.count, counted.capped) == (3, False)
    of_type = workflow_pb2.WorkflowFilter(workflow_types=["greet"], statuses=[PENDING])
    assert (await calls.workflow("CountWorkflows", filter=of_type)).count == 2
    assert (await calls.workflow("CountWorkflows", namespace_id="other")).count == 0


async def test_explain(calls: Calls, stubs: Stubs) -> None:
    run_id = (await stubs.start(workflow_id="why")).run_id
    explained = await calls.workflow("ExplainWorkflow", workflow_id="why")
    assert explained.reason == "no_worker"
    assert "greet" in explained.sentence
    assert explained.facts["run_id"] == run_id
    assert explained.remedy
    worker_id = await stubs.register()
    task = await stubs.poll(worker_id)
    await calls.worker("BeginStep", **leased(task), step_name="charge")
    explained = await calls.workflow("ExplainWorkflow", run_id=run_id)
    assert (explained.reason, explained.facts["steps"]) == ("running", "charge")


async def test_a_timeout_fails_the_run(calls: Calls, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    run_id = (await stubs.start(timeout=Duration(seconds=2))).run_id
    task = await stubs.poll(worker_id)
    outcome = await calls.outcome(run_id)
    assert (outcome.status, outcome.error.kind) == (FAILED, common_pb2.ERROR_KIND_TIMEOUT)
    late = await refused(calls.worker("BeginStep", **leased(task), step_name="late"))
    assert late.code() in (grpc.StatusCode.ABORTED, grpc.StatusCode.DEADLINE_EXCEEDED)

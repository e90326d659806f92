"""What people look at: runs with filters and pages, steps, workers, health, the server itself."""

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from kagzi.server.grpc import deadlines
from kagzi.v1 import admin_pb2, common_pb2, worker_pb2, workflow_pb2
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload, leased, refused


async def test_runs_by_id_by_workflow_id_and_in_pages(stubs: Stubs) -> None:
    started = [
        await stubs.start(workflow_id=f"order-{number}", labels={"shop": "ab"[number % 2]}, input=json_payload("1"))
        for number in range(5)
    ]
    workflow = await stubs.get(started[0].run_id)
    assert (workflow.workflow_id, workflow.task_queue, workflow.input.data) == ("order-0", "greet", b"1")
    by_name = await stubs.workflows.GetWorkflow(
        workflow_pb2.GetWorkflowRequest(workflow_id="order-3"), timeout=TIMEOUT_S
    )
    assert by_name.workflow.run_id == started[3].run_id

    seen: list[str] = []
    token = ""
    while True:
        page = common_pb2.PageRequest(page_size=2, page_token=token, include_total_count=True)
        answer = await stubs.workflows.ListWorkflows(workflow_pb2.ListWorkflowsRequest(page=page), timeout=TIMEOUT_S)
        assert answer.page.total_count == 5
        assert not any(run.HasField("input") for run in answer.workflows)
        seen += [run.workflow_id for run in answer.workflows]
        token = answer.page.next_page_token
        if not answer.page.has_more:
            break
    assert seen == [f"order-{number}" for number in (4, 3, 2, 1, 0)]

    where = workflow_pb2.WorkflowFilter(labels={"shop": "a"}, statuses=[workflow_pb2.WORKFLOW_STATUS_PENDING])
    filtered = await stubs.workflows.ListWorkflows(workflow_pb2.ListWorkflowsRequest(filter=where), timeout=TIMEOUT_S)
    assert [run.workflow_id for run in filtered.workflows] == ["order-4", "order-2", "order-0"]
    none = workflow_pb2.ListWorkflowsRequest(status_filter=workflow_pb2.WORKFLOW_STATUS_FAILED)
    assert not (await stubs.workflows.ListWorkflows(none, timeout=TIMEOUT_S)).workflows


async def test_runs_that_fail_and_wait_by_end_and_by_the_beginning_of_an_id(stubs: Stubs) -> None:
    worker_id = await stubs.register()
    await stubs.start(workflow_id="order-1")
    task = await stubs.poll(worker_id)
    begin = worker_pb2.BeginStepRequest(**leased(task), step_name="call", step_id="call")
    await stubs.workers.BeginStep(begin, timeout=TIMEOUT_S)
    error = common_pb2.ErrorDetail(message="boom", type="ValueError")
    await stubs.workers.FailStep(
        worker_pb2.FailStepRequest(**leased(task), step_id="call", error=error), timeout=TIMEOUT_S
    )
    run = await stubs.get(task.run_id)
    assert (run.retrying_steps, run.awaits_signal) == (1, 0)
    other = await stubs.start(workflow_id="order-2")
    await stubs.workflows.TerminateWorkflow(
        workflow_pb2.TerminateWorkflowRequest(run_id=other.run_id), timeout=TIMEOUT_S
    )

    async def listed(order: workflow_pb2.RunOrder = workflow_pb2.RUN_ORDER_UNSPECIFIED, **where: object) -> list[str]:
        request = workflow_pb2.ListWorkflowsRequest(filter=workflow_pb2.WorkflowFilter(**where), order=order)
        return [row.workflow_id for row in (await stubs.workflows.ListWorkflows(request, timeout=TIMEOUT_S)).workflows]

    assert await listed(failing=True) == ["order-1"]
    assert await listed(failing=False) == ["order-2"]
    assert await listed(waiting=True) == []
    assert await listed(id_prefix="order-") == ["order-2", "order-1"]
    assert await listed(id_prefix=task.run_id[:-2]) == ["order-1"]
    assert await listed(workflow_pb2.RUN_ORDER_ENDED) == ["order-2"]
    long_ago = run.created_at
    assert await listed(ended_after=long_ago) == ["order-2"]
    assert await listed(ended_before=long_ago) == []
    where = workflow_pb2.WorkflowFilter(failing=True)
    count = await stubs.workflows.CountWorkflows(workflow_pb2.CountWorkflowsRequest(filter=where), timeout=TIMEOUT_S)
    assert count.count == 1
    for wrong in (
        workflow_pb2.ListWorkflowsRequest(order=7),  # type: ignore[arg-type]
        workflow_pb2.ListWorkflowsRequest(
            order=workflow_pb2.RUN_ORDER_CREATED, filter=workflow_pb2.WorkflowFilter(ended_after=long_ago)
        ),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stubs.workflows.ListWorkflows(wrong, timeout=TIMEOUT_S)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_a_batch_is_answered_item_by_item(stubs: Stubs) -> None:
    request = workflow_pb2.StartBatchRequest(
        starts=[
            workflow_pb2.StartWorkflowRequest(workflow_type="greet", workflow_id="one"),
            workflow_pb2.StartWorkflowRequest(workflow_type="greet", concurrency_key="n\0"),
            workflow_pb2.StartWorkflowRequest(workflow_type=""),
            workflow_pb2.StartWorkflowRequest(workflow_type="greet", workflow_id="one"),
            workflow_pb2.StartWorkflowRequest(workflow_type="greet", namespace_id="elsewhere"),
        ]
    )
    answer = await stubs.workflows.StartBatch(request, timeout=TIMEOUT_S)
    kinds = [item.WhichOneof("outcome") for item in answer.items]
    assert kinds == ["started", "error", "error", "started", "error"]
    assert answer.items[3].started.already_exists
    assert answer.items[3].started.run_id == answer.items[0].started.run_id
    assert [answer.items[place].error.subject_id for place in (1, 2, 4)] == [
        "concurrency_key",
        "workflow_type",
        "namespace_id",
    ]


async def test_steps_with_their_attempts(stubs: Stubs) -> None:
    task = await stubs.claim()
    policy = common_pb2.RetryPolicy(
        maximum_attempts=2, initial_interval_ms=1, backoff_coefficient=1, maximum_interval_ms=1
    )
    begin = worker_pb2.BeginStepRequest(**leased(task), step_name="call", retry_policy=policy, input=json_payload("7"))
    await stubs.workers.BeginStep(begin, timeout=TIMEOUT_S)
    error = common_pb2.ErrorDetail(message="boom", type="ValueError")
    fail = worker_pb2.FailStepRequest(**leased(task), step_id="call", error=error)
    assert (await stubs.workers.FailStep(fail, timeout=TIMEOUT_S)).scheduled_retry
    begin.attempt = 2
    assert (await stubs.workers.BeginStep(begin, timeout=TIMEOUT_S)).should_execute
    done = worker_pb2.CompleteStepRequest(**leased(task), step_id="call", output=json_payload("8"))
    await stubs.workers.CompleteStep(done, timeout=TIMEOUT_S)

    request = admin_pb2.GetStepRequest(run_id=task.run_id, step_id="call")
    step = (await stubs.admin.GetStep(request, timeout=TIMEOUT_S)).step
    assert (step.attempt_number, step.output.data, step.input.data) == (2, b"8", b"7")
    assert [(attempt.attempt_number, attempt.error.message) for attempt in step.attempts] == [(1, "boom")]
    request = admin_pb2.GetTimelineRequest(
        run_id=task.run_id, around="call", statuses=[worker_pb2.STEP_STATUS_COMPLETED]
    )
    [drawn] = (await stubs.admin.GetTimeline(request, timeout=TIMEOUT_S)).steps
    assert (drawn.step_id, drawn.attempt, len(drawn.attempts), drawn.error) == ("call", 2, 1, "")
    assert drawn.attempts[0].finished_at == step.attempts[0].finished_at
    assert drawn.attempts[0].worker_id == step.attempts[0].worker_id != ""
    lean = await stubs.admin.ListSteps(admin_pb2.ListStepsRequest(run_id=task.run_id), timeout=TIMEOUT_S)
    assert not lean.steps[0].HasField("output")
    full = admin_pb2.ListStepsRequest(run_id=task.run_id, include_payloads=True, step_name="call")
    assert (await stubs.admin.ListSteps(full, timeout=TIMEOUT_S)).steps[0].output.data == b"8"


async def test_the_largest_places_in_a_timeline(stubs: Stubs) -> None:
    start = workflow_pb2.StartWorkflowRequest(workflow_type="nobody")
    run_id = (await stubs.workflows.StartWorkflow(start, timeout=TIMEOUT_S)).run_id
    for field in ("after", "before"):
        largest = admin_pb2.GetTimelineRequest(run_id=run_id, **{field: 2**63 - 2})
        assert not (await stubs.admin.GetTimeline(largest, timeout=TIMEOUT_S)).steps
        beyond = admin_pb2.GetTimelineRequest(run_id=run_id, **{field: 2**63 - 1})
        refusal = await refused(stubs.admin.GetTimeline(beyond, timeout=TIMEOUT_S))
        assert refusal.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert f"{field}={2**63 - 1} is outside" in (refusal.details() or "")


async def test_a_timeline_tells_when_the_run_was_paused(stubs: Stubs) -> None:
    started = await stubs.workflows.StartWorkflow(
        workflow_pb2.StartWorkflowRequest(workflow_type="nobody"), timeout=TIMEOUT_S
    )
    run_id = started.run_id
    for reason in ("lunch", "tea"):
        pause = workflow_pb2.PauseWorkflowRequest(run_id=run_id, reason=reason)
        await stubs.workflows.PauseWorkflow(pause, timeout=TIMEOUT_S)
        if reason == "lunch":
            resume = workflow_pb2.ResumeWorkflowRequest(run_id=run_id)
            await stubs.workflows.ResumeWorkflow(resume, timeout=TIMEOUT_S)
    timeline = await stubs.admin.GetTimeline(admin_pb2.GetTimelineRequest(run_id=run_id), timeout=TIMEOUT_S)
    assert [(pause.reason, pause.HasField("finished_at")) for pause in timeline.pauses] == [
        ("lunch", True),
        ("tea", False),
    ]
    lunch, tea = timeline.pauses
    assert lunch.started_at.ToMicroseconds() <= lunch.finished_at.ToMicroseconds() <= tea.started_at.ToMicroseconds()


async def test_a_long_history_is_streamed_page_by_page(memory_stubs: Stubs) -> None:
    task = await memory_stubs.claim()
    big = common_pb2.Payload(data=b"1" * 200_000)
    for number in range(4):
        begin = worker_pb2.BeginStepRequest(**leased(task), step_name=f"s{number}")
        await memory_stubs.workers.BeginStep(begin, timeout=TIMEOUT_S)
        done = worker_pb2.CompleteStepRequest(**leased(task), step_id=f"s{number}", output=big)
        await memory_stubs.workers.CompleteStep(done, timeout=TIMEOUT_S)
    request = worker_pb2.GetHistoryRequest(**leased(task))
    pages = [page async for page in memory_stubs.workers.GetHistory(request, timeout=TIMEOUT_S)]
    assert len(pages) > 1
    assert [page.has_more for page in pages] == [True] * (len(pages) - 1) + [False]
    assert [step.step_id for page in pages for step in page.steps] == ["s0", "s1", "s2", "s3"]
    request.lease.counter += 1
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await memory_stubs.workers.GetHistory(request, timeout=TIMEOUT_S).read()
    assert refusal.value.code() is grpc.StatusCode.ABORTED


async def test_workers(stubs: Stubs) -> None:
    worker_id = await stubs.register("greet", "other")
    request = admin_pb2.ListWorkersRequest(task_queue="other", status_filter=worker_pb2.WORKER_STATUS_ONLINE)
    listed = await stubs.admin.ListWorkers(request, timeout=TIMEOUT_S)
    assert [worker.worker_id for worker in listed.workers] == [worker_id]
    assert sorted(listed.workers[0].workflow_types) == ["greet", "other"]
    response = await stubs.admin.GetWorker(admin_pb2.GetWorkerRequest(worker_id=worker_id), timeout=TIMEOUT_S)
    assert response.worker.status == worker_pb2.WORKER_STATUS_ONLINE
    await stubs.workers.Deregister(worker_pb2.DeregisterRequest(worker_id=worker_id, drain=True), timeout=TIMEOUT_S)
    beat = await stubs.workers.Heartbeat(worker_pb2.HeartbeatRequest(worker_id=worker_id), timeout=TIMEOUT_S)
    assert beat.should_drain


async def test_the_server_says_what_it_is_and_how_it_is(database_url: str, stubs: Stubs) -> None:
    info = await stubs.admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=TIMEOUT_S)
    assert info.store == database_url.partition(":")[0]
    assert info.start_batches == {"sqlite": 1, "postgresql": 2}[info.store]
    assert info.now.seconds > 0
    health = await stubs.admin.HealthCheck(admin_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    assert health.status == admin_pb2.HealthCheckResponse.SERVING


async def test_waiting_answers_the_state_when_the_time_is_over(stubs: Stubs) -> None:
    started = await stubs.start()
    request = workflow_pb2.WaitRequest(run_id=started.run_id, timeout=Duration(nanos=50_000_000))
    answer = await stubs.workflows.Wait(request, timeout=TIMEOUT_S)
    assert (answer.ended, answer.status) == (False, workflow_pb2.WORKFLOW_STATUS_PENDING)
    cancelled = await stubs.workflows.CancelWorkflow(
        workflow_pb2.CancelWorkflowRequest(run_id=started.run_id), timeout=TIMEOUT_S
    )
    assert cancelled.status == workflow_pb2.WORKFLOW_STATUS_CANCELLED
    assert (await stubs.workflows.Wait(request, timeout=TIMEOUT_S)).ended
    request.timeout.seconds = 61
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stubs.workflows.Wait(request)
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_poll_answers_before_its_callers_deadline(memory_stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "MARGIN_MS", 30_000)  # on a loaded machine
    worker_id = await memory_stubs.register()
    request = worker_pb2.PollTaskRequest(worker_id=worker_id, wait=Duration(seconds=60))
    answer = await memory_stubs.workers.PollTask(request, timeout=30.5)
    assert not answer.run_id

"""Signals, pause, retry, fork, count, explain: what a client asks for is what the server is asked."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from kagzi.core.errors import InvalidArgument, PreconditionFailed, RunError, Unavailable
from kagzi.core.states import RunStatus
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.workflow.signals import Signal
from kagzi.sdk.workflow.workflow import Workflow
from kagzi.v1 import common_pb2
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_server import FakeServer
from tests.sdk.net.test_runs import RUN_ID, known_as
from tests.support.timeouts import LOADED_MACHINE

DONE = wf.WORKFLOW_STATUS_COMPLETED
OTHER_ID = "0198c1de-0000-7000-8000-000000000002"


@dataclass
class Decision:
    approved: bool
    by: str = ""


decision = Signal("decision", Decision)


async def _approve(ctx: Any, amount: int) -> str:
    return "paid"


approve: Workflow[int, str] = Workflow(_approve, name="approve")


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Kagzi]:
    known_as(server, run_id=RUN_ID, workflow_id="order-1")
    server.answers["SignalWorkflow"] = lambda request: wf.SignalWorkflowResponse(run_id=RUN_ID)
    async with Kagzi.connect(server.address) as connected:
        yield connected


async def test_a_signal_by_run_id_and_by_workflow_id(server: FakeServer, client: Kagzi) -> None:
    await client.signal(RUN_ID, decision, Decision(approved=True, by="ada"))
    await client.signal("order-1", "note", {"a": 1})
    run = client.get("order-1")
    await run.signal(decision, Decision(approved=False))
    assert (run.id, run.workflow_id) == (RUN_ID, "order-1")
    first, second, third = server.requests("SignalWorkflow")
    assert (first.run_id, first.workflow_id, first.signal_name) == (RUN_ID, "", "decision")
    assert first.payload.data == b'{"approved":true,"by":"ada"}'
    # By workflow_id: the server finds the run that has not ended, in the same transaction.
    assert (second.run_id, second.workflow_id, second.payload.data) == ("", "order-1", b'{"a":1}')
    assert len({each.request_id for each in (first, second, third)}) == 3


async def test_a_signal_that_is_sent_again_is_the_same_signal(server: FakeServer, client: Kagzi) -> None:
    server.failures["SignalWorkflow"] = [Unavailable("a moment")]
    await client.signal("order-1", decision, Decision(approved=True))
    first, again = server.requests("SignalWorkflow")
    assert first == again
    assert first.request_id


async def test_a_signal_tells_whether_the_run_was_waiting_for_it(server: FakeServer, client: Kagzi) -> None:
    assert await client.signal(RUN_ID, "note") is False
    server.answers["SignalWorkflow"] = lambda request: wf.SignalWorkflowResponse(run_id=RUN_ID, delivered=True)
    assert await client.get(RUN_ID).signal("note", request_id="once") is True
    assert server.requests("SignalWorkflow")[-1].request_id == "once"
    server.answers["ReplaceSignal"] = lambda request: wf.ReplaceSignalResponse(
        run_id=RUN_ID, status=wf.WORKFLOW_STATUS_RUNNING, resumed=not request.drop
    )
    assert await client.signal("order-1", "note", 1, replace=True) is True
    assert await client.get("order-1").drop_signal("note", request_id="drop") is False
    replaced, dropped = server.requests("ReplaceSignal")
    assert (replaced.payload.data, replaced.drop) == (b"1", False)
    assert (dropped.drop, dropped.request_id, dropped.workflow_id) == (True, "drop", "order-1")


async def test_a_signal_that_does_not_fit_is_refused_where_it_is_sent(server: FakeServer, client: Kagzi) -> None:
    wrong: Any = "yes"
    with pytest.raises(InvalidArgument, match="signal 'decision' does not fit"):
        await client.signal("order-1", decision, wrong)
    with pytest.raises(InvalidArgument, match="neither a Signal nor its name"):
        await client.signal("order-1", Any)  # type: ignore[call-overload]
    with pytest.raises(InvalidArgument, match="must not contain"):
        await client.signal("order-1", "a/b")
    assert not server.requests("SignalWorkflow")


async def test_signal_with_start(server: FakeServer, client: Kagzi) -> None:
    started = wf.StartWorkflowResponse(run_id=RUN_ID, workflow_id="e1", already_exists=True)
    server.answers["SignalWithStart"] = lambda request: wf.SignalWithStartResponse(started=started)
    run = await client.signal_with_start(approve, 7, decision, Decision(approved=True), id="e1", labels={"team": "a"})
    assert (run.id, run.workflow_id, run.created) == (RUN_ID, "e1", False)
    (sent,) = server.requests("SignalWithStart")
    assert (sent.start.workflow_type, sent.start.workflow_id, sent.start.input.data) == ("approve", "e1", b"7")
    assert (sent.signal_name, sent.payload.data) == ("decision", b'{"approved":true,"by":""}')
    assert (dict(sent.start.labels), sent.namespace_id, bool(sent.request_id)) == ({"team": "a"}, "default", True)


async def test_terminate_pause_resume_and_retry(server: FakeServer, client: Kagzi) -> None:
    server.answers["TerminateWorkflow"] = lambda _: wf.TerminateWorkflowResponse(status=wf.WORKFLOW_STATUS_CANCELLED)
    server.answers["PauseWorkflow"] = lambda _: wf.PauseWorkflowResponse(status=wf.WORKFLOW_STATUS_PAUSED)
    server.answers["ResumeWorkflow"] = lambda _: wf.ResumeWorkflowResponse(status=wf.WORKFLOW_STATUS_PENDING)
    server.answers["RetryWorkflow"] = lambda _: wf.RetryWorkflowResponse(status=wf.WORKFLOW_STATUS_PENDING)
    run = client.get("order-1")
    await run.pause("lunch")
    assert run.last_status is RunStatus.PAUSED
    await run.resume()
    assert run.last_status is RunStatus.PENDING
    await run.terminate("enough")
    assert run.last_status is RunStatus.CANCELLED
    await run.retry(from_step="charge")
    await client.pause(RUN_ID)
    await client.resume(RUN_ID)
    await client.terminate(RUN_ID, "again")
    await client.retry(RUN_ID)
    assert [(each.run_id, each.reason) for each in server.requests("PauseWorkflow")] == [
        (RUN_ID, "lunch"),
        (RUN_ID, ""),
    ]
    assert [each.reason for each in server.requests("TerminateWorkflow")] == ["enough", "again"]
    assert [each.from_step for each in server.requests("RetryWorkflow")] == ["charge", ""]
    assert all(each.request_id for each in server.requests("RetryWorkflow"))
    assert len(server.requests("ResumeWorkflow")) == 2


async def test_wake_tells_whether_it_was_waiting(server: FakeServer, client: Kagzi) -> None:
    server.answers["WakeStep"] = lambda request: wf.WakeStepResponse(
        status=wf.WORKFLOW_STATUS_PENDING, woken=bool(request.step_id)
    )
    run = client.get("order-1")
    assert await run.wake("charge") is True
    assert run.last_status is RunStatus.PENDING
    assert await client.wake(RUN_ID) is False
    assert [(each.run_id, each.step_id) for each in server.requests("WakeStep")] == [(RUN_ID, "charge"), (RUN_ID, "")]
    assert len({each.request_id for each in server.requests("WakeStep")}) == 2


async def test_fork_is_a_new_run_of_the_same_type(server: FakeServer, client: Kagzi) -> None:
    server.answers["ForkWorkflow"] = lambda _: wf.ForkWorkflowResponse(run_id=OTHER_ID, workflow_id="order-1b")
    forked = await client.get("order-1", approve).fork(
        from_step="charge", outputs={"price": {"total": 3}}, version=2, id="order-1b"
    )
    assert (forked.id, forked.workflow_id, forked.created) == (OTHER_ID, "order-1b", True)
    (sent,) = server.requests("ForkWorkflow")
    assert (sent.run_id, sent.from_step, sent.version, sent.workflow_id) == (RUN_ID, "charge", "2", "order-1b")
    assert {step_id: payload.data for step_id, payload in sent.outputs.items()} == {"price": b'{"total":3}'}
    await server.end(OTHER_ID, status=DONE, output=common_pb2.Payload(data=b'"paid"'))
    assert await forked.result() == "paid"
    await client.fork("order-1", version=2)
    assert [each.from_step for each in server.requests("ForkWorkflow")] == ["charge", ""]


async def test_a_result_follows_what_the_run_was_continued_as(server: FakeServer, client: Kagzi) -> None:
    run = await client.start(approve, 1, id="loop")
    await server.end(run.id, status=DONE, continued_as="second")
    await server.end("second", status=DONE, continued_as="third")
    await server.end("third", status=wf.WORKFLOW_STATUS_FAILED)
    with pytest.raises(RunError, match="run third failed"):
        await run.result(timeout=LOADED_MACHINE)


async def test_verbs_follow_what_the_run_was_continued_as(server: FakeServer, client: Kagzi) -> None:
    def get(request: wf.GetWorkflowRequest) -> wf.GetWorkflowResponse:
        ended = request.run_id != OTHER_ID
        workflow = wf.Workflow(
            run_id=request.run_id,
            workflow_id="loop",
            status=DONE if ended else wf.WORKFLOW_STATUS_RUNNING,
            continued_as=OTHER_ID if ended else "",
        )
        workflow.created_at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
        return wf.GetWorkflowResponse(workflow=workflow)

    def signal(request: wf.SignalWorkflowRequest) -> wf.SignalWorkflowResponse:
        if request.run_id != OTHER_ID:
            raise PreconditionFailed("it has ended")
        return wf.SignalWorkflowResponse(run_id=OTHER_ID)

    def cancel(request: wf.CancelWorkflowRequest) -> wf.CancelWorkflowResponse:
        return wf.CancelWorkflowResponse(status=DONE if request.run_id != OTHER_ID else wf.WORKFLOW_STATUS_RUNNING)

    server.answers |= {"GetWorkflow": get, "SignalWorkflow": signal, "CancelWorkflow": cancel}
    run = client.get(RUN_ID)
    await run.signal("tick")
    await run.cancel()
    for method in ("SignalWorkflow", "CancelWorkflow"):
        first, second = server.requests(method)
        assert (first.run_id, second.run_id) == (RUN_ID, OTHER_ID)
        assert first.request_id == second.request_id  # one and the same, wherever it arrives


async def test_count_takes_what_list_takes(server: FakeServer, client: Kagzi) -> None:
    server.answers["CountWorkflows"] = lambda _: wf.CountWorkflowsResponse(count=7)
    parent = await client.start(approve, 1)
    since = datetime(2026, 1, 1, tzinfo=UTC)
    assert await client.count(status=["failed"], workflow=approve, labels={"a": "b"}, since=since, parent=parent) == 7
    (sent,) = server.requests("CountWorkflows")
    where = sent.filter
    assert (list(where.statuses), list(where.workflow_types)) == ([wf.WORKFLOW_STATUS_FAILED], ["approve"])
    assert (dict(where.labels), where.parent_run_id) == ({"a": "b"}, parent.id)


async def test_a_count_tells_whether_there_are_more(server: FakeServer, client: Kagzi) -> None:
    server.answers["CountWorkflows"] = lambda request: wf.CountWorkflowsResponse(
        count=10_000, capped=not request.filter.workflow_id
    )
    every, named = await client.count(), await client.count(id="order-1")
    assert (every, every.capped, f"{every}") == (10_000, True, "10000")
    assert (named, named.capped) == (10_000, False)


async def test_waiting_returns_the_run_as_it_ended(server: FakeServer, client: Kagzi) -> None:
    run = await client.start(approve, 1, id="loop")
    await server.end(run.id, status=DONE, continued_as=OTHER_ID)
    await server.end(OTHER_ID, status=wf.WORKFLOW_STATUS_FAILED)

    def get(request: wf.GetWorkflowRequest) -> wf.GetWorkflowResponse:
        error = common_pb2.ErrorDetail(message="no money")
        workflow = wf.Workflow(run_id=request.run_id, status=wf.WORKFLOW_STATUS_FAILED, error=error)
        workflow.created_at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
        return wf.GetWorkflowResponse(workflow=workflow)

    server.answers["GetWorkflow"] = get
    ended = await run.wait(timeout=LOADED_MACHINE)
    assert (ended.id, ended.status, ended.output) == (OTHER_ID, RunStatus.FAILED, b"")
    assert ended.error is not None
    assert ended.error.message == "no money"
    assert run.last_status is RunStatus.FAILED
    with pytest.raises(TimeoutError, match="has not ended within 0s"):
        await client.get(RUN_ID).wait(timeout="0s")


async def test_an_explanation_is_a_sentence_with_facts(server: FakeServer, client: Kagzi) -> None:
    answer = wf.ExplainWorkflowResponse(
        sentence="No worker serves 'buy'.", reason="no_worker", facts={"workflow": "buy"}, remedy="kagzi worker FILE"
    )
    server.answers["ExplainWorkflow"] = lambda _: answer
    reported = await client.explain("order-1")
    assert str(reported) == "No worker serves 'buy'."
    assert (reported.reason, dict(reported.facts), reported.remedy) == (
        "no_worker",
        {"workflow": "buy"},
        "kagzi worker FILE",
    )


async def test_info_says_what_the_workflow_says_of_itself(server: FakeServer, client: Kagzi) -> None:
    def answer(request: wf.GetWorkflowRequest) -> wf.GetWorkflowResponse:
        workflow = wf.Workflow(
            run_id=RUN_ID,
            workflow_id="order-1",
            workflow_type="buy",
            status=wf.WORKFLOW_STATUS_RUNNING,
            status_text="halfway",
            progress=0.5,
            parent_run_id=OTHER_ID,
        )
        workflow.created_at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
        return wf.GetWorkflowResponse(workflow=workflow)

    server.answers["GetWorkflow"] = answer
    run = client.get("order-1")
    info = await run.info()
    assert (info.workflow, info.status, info.parent) == ("buy", RunStatus.RUNNING, OTHER_ID)
    assert (info.status_text, info.progress) == (run.status_text, run.progress) == ("halfway", 0.5)


async def test_many_starts_travel_together_and_are_answered_one_by_one(server: FakeServer, client: Kagzi) -> None:
    runs = await client.start_many(client.start(approve, n, id=f"o{n}") for n in range(100))
    assert [run.workflow_id for run in runs] == [f"o{n}" for n in range(100)]
    assert len(server.requests("StartBatch")) == 1

    def answer(request: wf.StartBatchRequest) -> wf.StartBatchResponse:
        refused = common_pb2.ErrorDetail(code=common_pb2.ERROR_CODE_PRECONDITION_FAILED, message="not you")
        started = wf.StartWorkflowResponse(run_id=RUN_ID)
        items = [
            wf.StartBatchResponse.Item(error=refused)
            if start.workflow_id == "bad"
            else wf.StartBatchResponse.Item(started=started)
            for start in request.starts
        ]
        return wf.StartBatchResponse(items=items)

    server.answers["StartBatch"] = answer
    ids = ("a", "bad", "c")
    # Builders will do as well.
    collected = await client.start_many([client.start(approve).input(1).id(each) for each in ids], on_error="collect")
    assert [type(each).__name__ for each in collected] == ["Run", "PreconditionFailed", "Run"]
    with pytest.raises(PreconditionFailed, match="not you") as caught:
        await client.start_many(client.start(approve, 1, id=each) for each in ids)
    assert caught.value.__notes__ == ["This is start number 1 of 3; 2 of them took place."]
    with pytest.raises(InvalidArgument, match="'raise' or 'collect'"):
        await client.start_many([], on_error="ignore")  # type: ignore[call-overload]


async def test_verbs_may_be_called_at_the_same_time(server: FakeServer, client: Kagzi) -> None:
    await asyncio.gather(*(client.signal("order-1", "tick", n) for n in range(50)))
    assert sorted(int(each.payload.data) for each in server.requests("SignalWorkflow")) == list(range(50))

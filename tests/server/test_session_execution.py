"""The session's newer words: signals, children, races, statuses and ends, spoken by hand; and notices that cross
servers."""

from typing import Any

import grpc
import pytest

from kagzi.core.records import Lease, RunKey, RunLease
from kagzi.engine import Notice, NoticeKind
from kagzi.server.app import Server
from kagzi.server.grpc.session import Outlet
from kagzi.system import SystemClock
from kagzi.v1 import common_pb2, workflow_pb2
from kagzi.v1 import worker_pb2 as pb
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload
from tests.server.test_session import Spoken


async def opened(stubs: Stubs) -> tuple[Spoken, pb.Task]:
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    return session, await session.task()


def wait_signal(name: str, step_id: str = "") -> dict[str, Any]:
    return {"wait_signal": pb.WaitSignalOperation(step_id=step_id or name, signal_name=name)}


def start_child(step_id: str, **fields: Any) -> dict[str, Any]:
    start = workflow_pb2.StartWorkflowRequest(workflow_type=fields.pop("workflow_type", "greet"))
    return {"start_child": pb.StartChildOperation(step_id=step_id, start=start, **fields)}


async def ask(session: Spoken, task: pb.Task, **kind: Any) -> pb.OperationAnswer:
    operation = session.operation(**kind)
    await session.operate(task, operation)
    return await session.answer(operation.id)


async def signal(stubs: Stubs, run_id: str, name: str, text: str) -> None:
    request = workflow_pb2.SignalWorkflowRequest(run_id=run_id, signal_name=name, payload=json_payload(text))
    await stubs.workflows.SignalWorkflow(request, timeout=TIMEOUT_S)


async def noticed(session: Spoken, kind: int) -> pb.RunNotice:
    received = await session.until(lambda received: any(notice.kind == kind for notice in received.notices))
    return next(notice for notice in received.notices if notice.kind == kind)


async def test_a_signal_while_the_run_is_leased_is_announced_and_fetched(stubs: Stubs) -> None:
    session, task = await opened(stubs)
    answer = await ask(session, task, **wait_signal("approved"))
    assert answer.WhichOneof("kind") == "timer"
    assert (answer.timer.wake_at_us, answer.timer.remaining_us) == (0, 0)
    await signal(stubs, task.run_id, "approved", "true")
    notice = await noticed(session, pb.RUN_NOTICE_KIND_RESULT)
    assert (notice.run_id, notice.lease) == (task.run_id, task.lease)
    fetch = pb.FetchResultsOperation(waits=["approved"], known_seq=answer.seq)
    results = (await ask(session, task, fetch_results=fetch)).fetched.results
    assert [(step.step_id, step.output.data) for step in results] == [("approved", b"true")]
    await signal(stubs, task.run_id, "again", "1")
    bound = await ask(session, task, **wait_signal("again"))
    assert bound.signal.payload.data == b"1"
    assert bound.seq > results[0].seq


async def test_a_repeat_after_the_signal_has_come_is_answered_with_it(stubs: Stubs) -> None:
    session, task = await opened(stubs)
    await ask(session, task, **wait_signal("approved"))
    await signal(stubs, task.run_id, "approved", "true")
    await noticed(session, pb.RUN_NOTICE_KIND_RESULT)
    repeated = await ask(session, task, **wait_signal("approved"))
    assert repeated.signal.payload.data == b"true"


async def test_a_child_its_race_and_its_end(stubs: Stubs) -> None:
    session, task = await opened(stubs)
    first = (await ask(session, task, **start_child("first"))).child
    second = (await ask(session, task, **start_child("second"))).child
    assert not first.already_exists
    children = {child.run_id: child for child in (await session.task(), await session.task())}
    assert set(children) == {first.child_run_id, second.child_run_id}
    race = session.operation(race=pb.RaceOperation(step_id="race", winner="first", losers=["second"]))
    await session.operate(task, race)
    await session.acknowledged(race.id)
    notice = await noticed(session, pb.RUN_NOTICE_KIND_CANCEL_REQUESTED)
    assert notice.run_id == second.child_run_id
    await ask(session, children[first.child_run_id], complete_run=pb.CompleteRunOperation(output=json_payload("7")))
    fetch = pb.FetchResultsOperation(waits=["first"], known_seq=0)
    results = (await ask(session, task, fetch_results=fetch)).fetched.results
    assert ("first", b"7") in [(step.step_id, step.output.data) for step in results]
    refused = await ask(session, task, **start_child("bad", workflow_type=""))
    assert refused.WhichOneof("kind") == "exhausted"
    assert refused.exhausted.error.code == common_pb2.ERROR_CODE_INVALID_ARGUMENT
    assert refused.exhausted.error.subject_id == "workflow_type"
    fetch = pb.FetchResultsOperation(waits=["bad"], known_seq=0)
    results = (await ask(session, task, fetch_results=fetch)).fetched.results
    assert [step.error for step in results if step.step_id == "bad"] == [refused.exhausted.error]


async def test_a_pause_is_requested_and_the_run_released(stubs: Stubs) -> None:
    session, task = await opened(stubs)
    request = workflow_pb2.PauseWorkflowRequest(run_id=task.run_id, reason="look")
    await stubs.workflows.PauseWorkflow(request, timeout=TIMEOUT_S)
    notice = await noticed(session, pb.RUN_NOTICE_KIND_PAUSE_REQUESTED)
    assert (notice.run_id, notice.reason) == (task.run_id, "look")
    closed = (await ask(session, task, release=pb.ReleaseOperation())).closed
    assert closed.status == workflow_pb2.WORKFLOW_STATUS_PAUSED


async def test_statuses_heartbeats_and_patches_are_plain(stubs: Stubs) -> None:
    session, task = await opened(stubs)
    operations = [
        session.operation(begin_step=pb.BeginStepOperation(step_id="long", attempt=1)),
        session.operation(
            step_heartbeat=pb.StepHeartbeatOperation(step_id="long", attempt=1, details=json_payload("3"))
        ),
        session.operation(set_status=pb.SetStatusOperation(text="half way", progress=0.5)),
        session.operation(patch=pb.PatchOperation(step_id="new-tax")),
    ]
    await session.operate(task, *operations)
    await session.acknowledged(*(operation.id for operation in operations))
    run = await stubs.get(task.run_id)
    assert (run.status_text, run.progress) == ("half way", 0.5)


async def test_a_run_goes_on_as_another(stubs: Stubs) -> None:
    session, task = await opened(stubs)
    closed = (await ask(session, task, continue_as_new=pb.ContinueAsNewOperation(input=json_payload("2")))).closed
    assert closed.status == workflow_pb2.WORKFLOW_STATUS_COMPLETED
    successor = await session.task()
    assert (successor.run_id, successor.workflow_id) == (closed.continued_as, task.workflow_id)
    request = workflow_pb2.WaitRequest(run_id=task.run_id)
    outcome = (await stubs.workflows.Wait(request, timeout=TIMEOUT_S)).outcome
    assert outcome.continued_as == successor.run_id
    assert (await stubs.get(task.run_id)).continued_as == successor.run_id


async def test_code_that_does_not_fit_pauses_the_run(stubs: Stubs) -> None:
    session, task = await opened(stubs)
    problem = common_pb2.ErrorDetail(kind=common_pb2.ERROR_KIND_NONDETERMINISM, message="order.py:12")
    closed = (await ask(session, task, diverged=pb.DivergedOperation(problem=problem, build_id="b1"))).closed
    assert closed.status == workflow_pb2.WORKFLOW_STATUS_PAUSED
    assert (await stubs.get(task.run_id)).problem.message == "order.py:12"


async def test_notices_reach_a_worker_that_is_connected_to_another_server(
    start_server: StartServer, postgres_url: str
) -> None:
    here: Server = await start_server(postgres_url)
    there: Server = await start_server(postgres_url)
    async with (
        grpc.aio.insecure_channel(here.grpc_address) as near,
        grpc.aio.insecure_channel(there.grpc_address) as far,
    ):
        session, task = await opened(Stubs(near))
        await ask(session, task, **wait_signal("approved"))
        other = Stubs(far)
        await signal(other, task.run_id, "approved", "true")
        await noticed(session, pb.RUN_NOTICE_KIND_RESULT)
        cancel = workflow_pb2.CancelWorkflowRequest(run_id=task.run_id, reason="enough")
        await other.workflows.CancelWorkflow(cancel, timeout=TIMEOUT_S)
        assert (await noticed(session, pb.RUN_NOTICE_KIND_CANCEL_REQUESTED)).reason == "enough"


@pytest.mark.parametrize("kind", ["result", "pause_requested"])
def test_the_same_notice_twice_is_sent_once(kind: NoticeKind) -> None:
    outlet = Outlet(SystemClock())
    leased = RunLease(RunKey("default", "r"), Lease(1, 7))
    outlet.notices([Notice(leased, kind), Notice(leased, kind)])
    outlet.notices([Notice(leased, kind)])
    (message,) = outlet._take()
    assert len(pb.SessionResponse.FromString(message).notices) == 1

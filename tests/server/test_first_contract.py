"""Fields of the first contract mean what it says, or are refused: none is accepted and ignored."""

from google.protobuf.duration_pb2 import Duration

from kagzi.v1 import worker_pb2
from tests.server.stubs import TIMEOUT_S, Stubs, leased


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

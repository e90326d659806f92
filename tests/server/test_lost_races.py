"""Unary calls about steps that lost a race are refused in words, like any other call that comes too late."""

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from kagzi.core.errors import PreconditionFailed
from kagzi.core.records import Lease, RunKey
from kagzi.core.run.commands import BeginSleep, DecideRace, WaitSignal
from kagzi.core.run.refusals import lost_race
from kagzi.server.app import Server
from kagzi.v1 import worker_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.stubs import TIMEOUT_S, Stubs, leased

DAY = Duration(seconds=86_400)


async def with_a_race_decided(server: Server, stubs: Stubs) -> Any:
    """A task whose sleep and wait were closed by a race that another branch won."""
    worker_id = await stubs.register()
    await stubs.start()
    task = await stubs.poll(worker_id)
    assert server._engine is not None
    submit = server._engine.tasks.submit
    run, lease = RunKey("default", task.run_id), Lease(task.lease.counter, task.lease.nonce)
    await submit(BeginSleep(run=run, lease=lease, step_id="nap", name="nap", duration_us=86_400_000_000))
    await submit(WaitSignal(run=run, lease=lease, step_id="approved", signal_name="approved"))
    await submit(
        DecideRace(run=run, lease=lease, step_id="race", name="race", winner="other", losers=("nap", "approved"))
    )
    return task


async def refusal_of(call: Any) -> PreconditionFailed:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    error = from_rpc_error(refused.value)
    assert isinstance(error, PreconditionFailed)
    return error


async def test_a_sleep_and_a_wait_that_lost_their_race(server: Server, stubs: Stubs) -> None:
    task = await with_a_race_decided(server, stubs)
    sleep = worker_pb2.SleepRequest(**leased(task), step_id="nap", duration=DAY)
    wait = worker_pb2.WaitSignalRequest(**leased(task), step_id="approved", signal_name="approved")
    for call, step_id in (
        (stubs.workers.Sleep(sleep, timeout=TIMEOUT_S), "nap"),
        (stubs.workers.WaitSignal(wait, timeout=TIMEOUT_S), "approved"),
    ):
        error = await refusal_of(call)
        assert (error.message, error.subject, error.subject_id) == (
            lost_race(step_id).error.message,
            "step",
            step_id,
        )

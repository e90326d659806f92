"""The watchdog: a loop that is really blocked, and leases that are kept all the same."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from kagzi.sdk.worker.watchdog import Watchdog
from kagzi.v1 import worker_pb2 as pb
from tests.sdk.net.fake_server import WAIT_S, lease

LEASE_MS = 300
TRIES = 60
PROOF = pb.LeasedRun(run_id="r1", lease=lease()).SerializeToString()


class Heartbeats(grpc.GenericRpcHandler):
    """A server in threads of its own, so that a blocked loop does not block it."""

    def __init__(self) -> None:
        self.seen: queue.Queue[pb.HeartbeatRequest] = queue.Queue()
        self._server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[self])
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        assert handler_call_details.method == "/kagzi.v1.WorkerService/Heartbeat"
        return grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=pb.HeartbeatRequest.FromString,
            response_serializer=pb.HeartbeatResponse.SerializeToString,
        )

    def _answer(self, request: pb.HeartbeatRequest, context: grpc.ServicerContext) -> pb.HeartbeatResponse:
        self.seen.put(request)
        return pb.HeartbeatResponse(accepted=True)

    def channel(self) -> tuple[grpc.Channel, tuple[()]]:
        return grpc.insecure_channel(f"127.0.0.1:{self.port}"), ()

    def stop(self) -> None:
        self._server.stop(None).wait(WAIT_S)


@pytest.fixture
def heartbeats() -> Iterator[Heartbeats]:
    server = Heartbeats()
    yield server
    server.stop()


def watchdog(server: Heartbeats, *, limit_s: float = 60.0) -> Watchdog:
    return Watchdog(
        "w1",
        "default",
        proofs=lambda: [PROOF],
        on_renewed=lambda at: None,
        open_channel=server.channel,
        lease_ms=LEASE_MS,
        heartbeat_ms=LEASE_MS // 3,
        limit_s=limit_s,
    )


def block_the_loop(server: Heartbeats, count: int) -> list[pb.HeartbeatRequest]:
    """Blocks its thread until so many heartbeats have arrived beside it."""
    return [server.seen.get(timeout=WAIT_S) for _ in range(count)]


async def test_a_blocked_loop_keeps_its_leases_and_is_told_which_code_blocks_it(
    heartbeats: Heartbeats, caplog: pytest.LogCaptureFixture
) -> None:
    dog = watchdog(heartbeats)
    dog.start()
    try:
        with caplog.at_level(logging.WARNING, "kagzi.worker"):
            seen = block_the_loop(heartbeats, 3)
    finally:
        dog.stop()
    assert all(request.worker_id == "w1" and request.namespace_id == "default" for request in seen)
    assert [(leased.run_id, leased.lease) for leased in seen[0].leased] == [("r1", lease())]
    blamed = [record.getMessage() for record in caplog.records if "blocked here" in record.getMessage()]
    assert len(blamed) == 1
    assert "block_the_loop" in blamed[0]
    assert "plain `def`" in blamed[0]


async def test_a_loop_that_is_alive_is_left_alone(heartbeats: Heartbeats) -> None:
    for _ in range(TRIES):
        dog = watchdog(heartbeats)
        dog.start()
        longest_s = await alive_for(3 * LEASE_MS / 1_000)  # real time is the subject: three leases pass
        dog.stop()
        if heartbeats.seen.empty():
            return
        assert longest_s > LEASE_MS / 1_000 / 10, "it came to the aid of a loop that was alive"
        heartbeats.seen.queue.clear()  # on a loaded machine this loop may be as good as blocked: once more
    pytest.fail(f"this loop was held up {TRIES} times")


async def alive_for(seconds: float) -> float:
    """The longest time in which the loop did nothing, although it was to do something all the time."""
    longest = 0.0
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        await asyncio.sleep(0.005)
        longest = max(longest, time.monotonic() - began)
    return longest


async def test_a_process_that_hangs_loses_its_runs_in_the_end(
    heartbeats: Heartbeats, caplog: pytest.LogCaptureFixture
) -> None:
    dog = watchdog(heartbeats, limit_s=0.25)
    dog.start()
    try:
        with caplog.at_level(logging.ERROR, "kagzi.worker"):
            deadline = time.monotonic() + WAIT_S
            while not caplog.records and time.monotonic() < deadline:
                time.sleep(0.01)  # noqa: ASYNC251  blocking the loop is the subject
        count = heartbeats.seen.qsize()
        time.sleep(LEASE_MS / 1_000)  # noqa: ASYNC251
        assert heartbeats.seen.qsize() == count
    finally:
        dog.stop()
    assert "no longer renewed" in caplog.records[0].getMessage()


async def test_the_thread_ends_with_the_worker(heartbeats: Heartbeats) -> None:
    dog = watchdog(heartbeats)
    dog.start()
    dog.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "kagzi-watchdog"]


async def test_a_server_that_cannot_be_reached_does_not_end_the_watch(
    heartbeats: Heartbeats, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def open_channel() -> tuple[grpc.Channel, tuple[()]]:
        calls.append(1)
        return grpc.insecure_channel("127.0.0.1:1") if len(calls) == 1 else heartbeats.channel()[0], ()

    dog = Watchdog(
        "w1",
        "default",
        proofs=lambda: [PROOF],
        on_renewed=lambda at: None,
        open_channel=open_channel,
        lease_ms=LEASE_MS,
        heartbeat_ms=50,
    )
    dog.start()
    try:
        block_the_loop(heartbeats, 1)
    finally:
        dog.stop()
    assert "could not send a heartbeat" in caplog.text

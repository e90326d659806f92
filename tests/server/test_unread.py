"""A worker that sends and does not read: what waits for it is bounded, what it asked waits in the journal, and others
go on."""

import asyncio

import pytest

from kagzi.core import limits
from kagzi.core.limits import Settings
from kagzi.server.app import Server
from kagzi.server.grpc.unread import Unread, UnreadStream
from kagzi.v1 import common_pb2
from kagzi.v1 import worker_pb2 as pb
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs
from tests.server.test_session import Spoken, begin, complete

LARGE = 1_500_000
PATIENT = Settings(lease_ms=60_000, heartbeat_ms=20_000)  # nobody beats here


@pytest.fixture
async def server(start_server: StartServer, database_url: str) -> Server:
    return await start_server(database_url, settings=PATIENT)


class Peak:
    """The most that waited on all streams together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        self.full = asyncio.Event()
        add = UnreadStream.add

        def spy(stream: UnreadStream, size: int) -> None:
            add(stream, size)
            self.bytes = max(self.bytes, stream._unread.budget.used_bytes)
            if stream.is_full:
                self.full.set()

        monkeypatch.setattr(UnreadStream, "add", spy)


async def test_what_a_worker_does_not_read_is_bounded_and_nothing_of_it_is_lost(
    stubs: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    peak = Peak(monkeypatch)
    session = Spoken(stubs)
    await session.hello()
    await stubs.start()
    task = await session.task()
    for number in range(3):
        output = "x" * LARGE
        await session.operate(
            task, session.operation(**begin(f"s{number}")), session.operation(**complete(f"s{number}", output))
        )
    await session.acknowledged(*range(1, 7))
    operations = [session.operation(fetch_results=pb.FetchResultsOperation()) for _ in range(60)]
    for operation in operations:
        await session.operate(task, operation)
    await asyncio.wait_for(peak.full.wait(), TIMEOUT_S)
    for number in range(50):  # a neighbour is served while the other does not read
        await stubs.start("other", workflow_id=f"other-{number}")
    for operation in operations:
        answer = await session.answer(operation.id)
        assert answer.fetched.more
        assert len(answer.fetched.results[0].output.data) == LARGE
    ids = [answer.id for answer in session.received.answers]
    assert ids == sorted(ids)
    assert peak.bytes < limits.UNREAD_SESSION_BYTES + limits.BATCH_ANSWER_BYTES + 2 * limits.PAYLOAD_BYTES
    assert len(operations) * LARGE > 3 * peak.bytes, "all of it would have fitted: this shows less than it should"


async def test_a_worker_that_does_not_read_gets_no_runs(stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comes with its input: slots alone would let them pile up."""
    peak = Peak(monkeypatch)
    session = Spoken(stubs)
    await session.hello(max_concurrent=1_000)
    payload = common_pb2.Payload(data=b"x" * LARGE)
    for number in range(40):
        await stubs.start(workflow_id=f"r{number}", input=payload)
    await asyncio.wait_for(peak.full.wait(), TIMEOUT_S)
    runs = {(await session.task()).run_id for _ in range(40)}
    assert len(runs) == 40
    assert peak.bytes < limits.UNREAD_SESSION_BYTES + 2 * limits.CLAIM_BYTES + 2 * limits.PAYLOAD_BYTES


async def test_a_poll_takes_what_fits_and_leaves_the_rest_to_the_next(stubs: Stubs) -> None:
    worker_id = await stubs.register()
    payload = common_pb2.Payload(data=b"x" * 600_000)
    for number in range(5):
        await stubs.start(workflow_id=f"r{number}", input=payload)
    taken: list[str] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(taken) < 5:
            response = await stubs.poll(worker_id, max_tasks=100)
            assert response.ByteSize() < limits.MESSAGE_SOFT_BYTES + 2 * len(payload.data)
            taken += [task.run_id for task in response.tasks]
    assert len(set(taken)) == 5


def test_all_streams_together_keep_no_more_than_the_total_and_each_has_its_share() -> None:
    unread = Unread(10 * limits.MIB)
    streams = [UnreadStream(unread) for _ in range(20)]
    for stream in streams[:3]:
        while not stream.is_full:
            stream.add(100_000)
    assert unread.budget.used_bytes <= 11 * limits.MIB
    changes: list[bool] = []
    streams[5].on_change = changes.append
    streams[5].add(limits.UNREAD_SHARE_BYTES - 1)
    assert not streams[5].is_full, "its share is its own"
    streams[5].add(1)
    assert streams[5].is_full
    streams[0].read(3 * limits.MIB)  # another one has read: that makes room for this one
    assert changes == [True, False]
    for stream in streams:
        stream.close()
    assert unread.budget.used_bytes == 0
    assert not unread.full

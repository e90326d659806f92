"""Messages in parts: put together, bounded each and together, and refused where the rest makes no sense."""

import grpc
import pytest

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument, ResourceExhausted
from kagzi.server.grpc.incomplete import IncompleteMessages, Parts
from kagzi.v1 import worker_pb2 as pb
from tests.server.stubs import Stubs
from tests.server.test_session import Spoken, begin


def test_parts_become_a_message_with_the_last() -> None:
    parts = Parts(IncompleteMessages())
    assert parts.add(b"ab", is_last=False) is None
    assert parts.add(b"c", is_last=True) == b"abc"
    assert parts.add(b"d", is_last=True) == b"d"


def test_the_message_that_waits_longest_for_its_rest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INCOMPLETE_BYTES", 10)
    incomplete = IncompleteMessages()
    first, second, third = (Parts(incomplete) for _ in range(3))
    first.add(b"x" * 4, is_last=False)
    second.add(b"x" * 4, is_last=False)
    third.add(b"x" * 4, is_last=False)
    with pytest.raises(ResourceExhausted, match="did not come while others needed the room"):
        first.add(b"y", is_last=True)
    assert second.add(b"y", is_last=True) == b"xxxxy"
    third.drop()
    assert incomplete._bytes == 0
    assert not incomplete._kept


def test_a_message_in_parts_is_no_larger_than_others() -> None:
    parts = Parts(IncompleteMessages())
    parts.add(b"x" * limits.MESSAGE_HARD_BYTES, is_last=False)
    with pytest.raises(InvalidArgument, match="MESSAGE_HARD_BYTES"):
        parts.add(b"x", is_last=True)


async def test_a_request_in_parts_takes_effect_with_the_last(memory_stubs: Stubs) -> None:
    session = Spoken(memory_stubs)
    await session.hello()
    await memory_stubs.start()
    task = await session.task()
    operation = session.operation(**begin("in-parts"))
    whole = pb.SessionRequest(
        runs=[pb.RunOperations(run_id=task.run_id, lease=task.lease, operations=[operation])]
    ).SerializeToString()
    await session.send(part=whole[:10])
    await session.operate(task, session.operation(**begin("whole")))
    assert (await session.acknowledged(2)).keys() == {2}
    await session.send(part=whole[10:], is_last_part=True)
    await session.acknowledged(1)


@pytest.mark.parametrize(
    "inner",
    [pb.SessionRequest(part=b"x", is_last_part=True), pb.SessionRequest(hello=pb.SessionHello())],
    ids=["parts", "hello"],
)
async def test_parts_are_no_way_around_the_rules(memory_stubs: Stubs, inner: pb.SessionRequest) -> None:
    session = Spoken(memory_stubs)
    await session.hello()
    await session.send(part=inner.SerializeToString(), is_last_part=True)
    assert await session.until_closed() is grpc.StatusCode.INVALID_ARGUMENT

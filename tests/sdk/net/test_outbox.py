"""The outgoing message: put together from parts, kept byte for byte until answered."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kagzi.core import limits
from kagzi.sdk.execution.ports import Answer
from kagzi.sdk.worker.outbox import Outbox, OutPort, field
from kagzi.v1 import worker_pb2 as pb
from kagzi.v1.common_pb2 import Payload
from tests.sdk.net.fake_server import lease


class Woken:
    def __init__(self) -> None:
        self.wakes = 0
        self.holds = 0
        self.outbox = Outbox(self._wake, self._hold)

    def _wake(self) -> None:
        self.wakes += 1

    def _hold(self) -> None:
        self.holds += 1

    def port(self, run_id: str = "r1") -> OutPort:
        proof = pb.LeasedRun(run_id=run_id, lease=lease()).SerializeToString()
        return OutPort(self.outbox, run_id, (1, 99), proof)


def ignore(_: Answer) -> None: ...


def read(data: bytes) -> list[tuple[str, int, list[int]]]:
    """Per run: its id, the counter of its lease, the ids of its operations."""
    request = pb.SessionRequest.FromString(data)
    return [(run.run_id, run.lease.counter, [each.id for each in run.operations]) for run in request.runs]


def complete(port: OutPort, step_id: str, output: bytes = b"1", on_answer: Callable[[Answer], None] = ignore) -> None:
    operation = port.send(on_answer)
    operation.complete_step.step_id = step_id
    operation.complete_step.output.data = output


def take(outbox: Outbox) -> list[bytes]:
    """What a writer takes at once: what is due, then one large part."""
    messages = outbox.take()
    if outbox.has_large:
        messages.append(outbox.take_large())
        outbox.large_written()
    return messages


def everything(outbox: Outbox) -> list[bytes]:
    """What leaves as often as it is asked, if each is answered."""
    messages: list[bytes] = []
    while taken := take(outbox):
        messages += taken
        for _, _, ids in [run for message in taken for run in read(message)]:
            for number in ids:
                outbox.answered(number)
    return messages


def test_few_large_operations_are_sent_before_one_is_answered() -> None:
    woken = Woken()
    for name in "abcdefgh":
        complete(woken.port(name), "s", b"x" * (limits.PAYLOAD_BYTES - 10))
    sent = [message for _ in range(8) for message in take(woken.outbox)]
    assert len(sent) == 4
    complete(woken.port("small"), "s")
    assert [read(message)[0][0] for message in take(woken.outbox)] == ["small"]
    wakes = woken.wakes
    woken.outbox.answered(1)
    assert woken.wakes == wakes + 1
    assert [read(message)[0][0] for message in take(woken.outbox)] == ["e"]
    assert [read(message)[0][0] for message in everything(woken.outbox)] == []
    for number in (2, 3, 4, 5):
        woken.outbox.answered(number)
    assert [read(message)[0][0] for message in everything(woken.outbox)] == ["f", "g", "h"]


@given(st.binary(max_size=70_000))
def test_a_field_is_what_protobuf_writes(data: bytes) -> None:
    assert field(b"\x0a", data or b"x") == Payload(data=data or b"x").SerializeToString()


def test_what_many_runs_send_is_one_message_with_a_part_for_each() -> None:
    woken = Woken()
    a, b = woken.port("a"), woken.port("b")
    complete(a, "s1")
    complete(b, "s1")
    complete(a, "s2")
    assert woken.wakes == 1
    (message,) = take(woken.outbox)
    assert read(message) == [("a", 1, [1, 3]), ("b", 1, [2])]
    assert take(woken.outbox) == []


def test_an_announcement_waits_for_the_next_send_of_its_run() -> None:
    woken = Woken()
    a, b = woken.port("a"), woken.port("b")
    a.announce().begin_step.step_id = "s1"
    b.announce().begin_step.step_id = "s1"
    assert (woken.wakes, woken.holds) == (0, 1)
    complete(b, "s1")
    (message,) = take(woken.outbox)
    assert read(message) == [("b", 1, [2, 3])]
    woken.outbox.release_waiting()
    (message,) = take(woken.outbox)
    assert read(message) == [("a", 1, [1])]
    woken.outbox.release_waiting()
    assert take(woken.outbox) == []


def test_messages_are_cut_between_runs_and_between_operations() -> None:
    woken = Woken()
    big = b"x" * (limits.MESSAGE_UNCOUNTED_BYTES // 3)
    a, b = woken.port("a"), woken.port("b")
    for n in range(5):
        complete(a, f"s{n}", big)
    complete(b, "s", big)
    messages = everything(woken.outbox)
    assert [read(message) for message in messages] == [
        [("a", 1, [1, 2])],
        [("a", 1, [3, 4])],
        [("a", 1, [5]), ("b", 1, [6])],
    ]
    assert all(len(message) <= limits.MESSAGE_UNCOUNTED_BYTES for message in messages)


def test_a_single_operation_may_be_bigger_than_a_message() -> None:
    woken = Woken()
    complete(woken.port("a"), "s", b"x" * (limits.PAYLOAD_BYTES - 10))
    complete(woken.port("b"), "s")
    assert [read(message) for message in take(woken.outbox)] == [[("b", 1, [2])], [("a", 1, [1])]]


def test_large_operations_leave_one_by_one_and_let_others_pass() -> None:
    woken = Woken()
    a, b = woken.port("a"), woken.port("b")
    big = b"x" * (limits.PAYLOAD_BYTES - 10)
    complete(a, "s1", big)
    complete(a, "s2", big)
    complete(a, "s3")  # stays behind what its run said before
    assert [read(message) for message in take(woken.outbox)] == [[("a", 1, [1])]]
    complete(b, "s1")
    complete(a, "s4")
    assert [read(message) for message in take(woken.outbox)] == [[("b", 1, [4])], [("a", 1, [2])]]
    assert [read(message) for message in everything(woken.outbox)] == [[("a", 1, [3])], [("a", 1, [5])]]
    assert woken.wakes >= 4


def test_what_a_lost_run_had_not_sent_is_forgotten() -> None:
    woken = Woken()
    a, b = woken.port("a"), woken.port("b")
    for port in (a, b):
        complete(port, "s1", b"x" * (limits.PAYLOAD_BYTES - 10))
    assert [read(message) for message in take(woken.outbox)] == [[("a", 1, [1])]]
    woken.outbox.drop(b)
    assert take(woken.outbox) == []


def test_a_message_is_kept_until_its_last_operation_is_answered() -> None:
    woken = Woken()
    a, b = woken.port("a"), woken.port("b")
    complete(a, "s1")
    complete(b, "s1")
    (first,) = take(woken.outbox)
    complete(a, "s2")
    (second,) = take(woken.outbox)
    assert [message.data for message in woken.outbox.unanswered()] == [first, second]
    assert woken.outbox.answered(1) is not None
    assert woken.outbox.answered(3) is not None
    assert [message.data for message in woken.outbox.unanswered()] == [first]
    assert woken.outbox.answered(2) is not None
    assert woken.outbox.answered(2) is None  # a repeated answer
    assert [message.data for message in woken.outbox.unanswered()] == []


def test_what_concerns_a_lost_run_only_is_not_sent_again() -> None:
    woken = Woken()
    a, b = woken.port("a"), woken.port("b")
    complete(a, "s1")
    (only_a,) = take(woken.outbox)
    complete(b, "s1")
    (only_b,) = take(woken.outbox)
    complete(a, "s2")  # not sent yet
    woken.outbox.drop(a)
    a.is_open = False
    assert take(woken.outbox) == []
    assert [message.data for message in woken.outbox.unanswered()] == [only_b]
    assert only_a != only_b


def test_a_closed_port_sends_nothing() -> None:
    woken = Woken()
    port = woken.port()
    port.is_open = False
    complete(port, "s")
    port.announce().begin_step.step_id = "s"
    assert (woken.wakes, woken.holds, take(woken.outbox)) == (0, 0, [])


def test_while_a_large_part_is_written_others_leave_and_its_own_run_stays_behind() -> None:
    woken = Woken()
    large, small = woken.port("large"), woken.port("small")
    complete(large, "s1", b"x" * limits.PAYLOAD_BYTES)
    assert woken.outbox.take() == []
    assert read(woken.outbox.take_large()) == [("large", 1, [1])]
    complete(large, "s2")
    complete(small, "s1")
    assert [read(message) for message in woken.outbox.take()] == [[("small", 1, [3])]]
    wakes = woken.wakes
    woken.outbox.large_written()
    assert woken.wakes == wakes + 1
    assert [read(message) for message in take(woken.outbox)] == [[("large", 1, [2])]]
    complete(large, "s3")
    assert [read(message) for message in woken.outbox.take()] == [[("large", 1, [4])]]

"""The outgoing messages: the one being filled, and those sent but not yet wholly answered.

Operations are written by the executions straight into their run's part of the next message. A message is put together
from encoded parts and kept, byte for byte, until each of its operations is answered: what is kept is what a reconnect
sends again.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable

from ...core import limits
from ...core.errors import limit_reached
from ...v1 import common_pb2
from ...v1 import worker_pb2 as pb
from ..execution.ports import Execution, OnAnswer

# Field tags of SessionRequest and RunOperations. Parts of a protobuf message may be encoded apart and joined.
RUNS_TAG = b"\x12"
HEARTBEAT_TAG = b"\x1a"
RECEIVED_TAG = b"\x22"
_OPERATION_TAG = b"\x1a"

_LARGE_PART_BYTES = 256 * limits.KIB  # beyond it a part travels alone
_LARGE_UNANSWERED = 4
_LARGEST_PART_BYTES = limits.MESSAGE_HARD_BYTES - limits.KIB  # a part may be a message by itself


def field(tag: bytes, body: bytes, head: bytes = b"") -> bytes:
    """One length-delimited field with `head` and `body`, which may be large and is copied once."""
    length = len(head) + len(body)
    if length < 0x80:
        return tag + bytes((length,)) + head + body
    prefix = bytearray(tag)
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + head + body


class Message:
    """Operations that were sent together."""

    __slots__ = ("data", "is_large", "settled", "unanswered")

    def __init__(self, data: bytes, unanswered: int) -> None:
        self.data = data
        self.unanswered = unanswered
        self.is_large = False
        self.settled: asyncio.Event | None = None  # for one who waits until all of them are answered


class Sent:
    """An operation that is not answered yet."""

    __slots__ = ("id", "message", "on_answer", "port")

    def __init__(self, id: int, port: "OutPort", on_answer: OnAnswer | None) -> None:
        self.id = id
        self.port = port
        self.on_answer = on_answer
        self.message: Message | None = None


class OutPort:
    """The outgoing half of a leased run's port."""

    def __init__(self, outbox: "Outbox", run_id: str, lease: tuple[int, int], proof: bytes, last_seq: int = 0) -> None:
        """`proof` is run_id and lease, encoded: fields 1 and 2 of RunOperations and of LeasedRun alike."""
        self.run_id = run_id
        self.lease = lease
        self.last_seq = last_seq
        self.foreign_seq = 0
        self.proof = proof
        self.is_open = True
        self.execution: Execution | None = None
        self.group: pb.RunOperations | None = None
        self.fresh: list[Sent] = []
        self.is_due = False
        self._outbox = outbox

    def acknowledged(self, seq: int) -> None:
        """An operation of this run was recorded as number `seq`. Acknowledgements come in the order of these
        numbers."""
        if seq > self.last_seq:
            if seq > self.last_seq + 1:
                self.foreign_seq = seq - 1
            self.last_seq = seq

    def announce(self) -> pb.Operation:
        if not self.is_open:
            return pb.Operation()
        if self.group is None:
            self._outbox.hold(self)
        return self._add(None)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        if not self.is_open:
            return pb.Operation()
        if not self.is_due:
            self._outbox.due(self)
        return self._add(on_answer)

    def _add(self, on_answer: OnAnswer | None) -> pb.Operation:
        group = self.group
        if group is None:
            group = self.group = pb.RunOperations()
        operation = group.operations.add()
        sent = self._outbox.number(self, on_answer)
        operation.id = sent.id
        self.fresh.append(sent)
        return operation


class Outbox:
    """`wake` is called when something is to leave at the end of this loop pass, `start_hold` when something may wait a
    little."""

    def __init__(self, wake: Callable[[], None], start_hold: Callable[[], None]) -> None:
        self._wake = wake
        self._start_hold = start_hold
        self._last_id = 0
        self._due: list[OutPort] = []
        self._waiting: dict[OutPort, None] = {}
        self._sent: dict[int, Sent] = {}
        self._messages: deque[Message] = deque()
        self._too_large: list[tuple[Sent, bytes]] = []
        self._large: deque[tuple[OutPort, bytes, list[Sent]]] = deque()
        self._large_ports: Counter[OutPort] = Counter()
        self._large_unanswered = 0

    # --- filling ------------------------------------------------------------------------------------------------------

    def number(self, port: OutPort, on_answer: OnAnswer | None) -> Sent:
        self._last_id = number = self._last_id + 1
        sent = self._sent[number] = Sent(number, port, on_answer)
        return sent

    def due(self, port: OutPort) -> None:
        port.is_due = True
        self._waiting.pop(port, None)
        if not self._due:
            self._wake()
        self._due.append(port)

    def hold(self, port: OutPort) -> None:
        if not self._waiting:
            self._start_hold()
        self._waiting[port] = None

    def release_waiting(self) -> None:
        """Held long enough: let it go."""
        for port in tuple(self._waiting):
            self.due(port)

    # --- sending ------------------------------------------------------------------------------------------------------

    def take(self) -> list[bytes]:
        """What is due, as messages of about MESSAGE_SOFT_BYTES at most. From now on they are kept until answered.

        One large part at a time, and few that are not answered: what other runs say meanwhile goes before the next one,
        and does not wait at the server behind what that cannot take yet. What a run says after a large part of its own
        stays behind it.
        """
        due, self._due = self._due, []
        taken: list[bytes] = []
        parts: list[bytes] = []
        inside: list[Sent] = []
        size = 0
        for port in due:
            for part, operations in _parts(port):
                if len(part) > _LARGEST_PART_BYTES:
                    self._too_large.extend((sent, part) for sent in operations)  # one: more would have been cut
                    continue
                if len(part) > _LARGE_PART_BYTES or (self._large and port in self._large_ports):
                    self._large.append((port, part, operations))
                    self._large_ports[port] += 1
                    continue
                if parts and size + len(part) > limits.MESSAGE_SOFT_BYTES:
                    taken.append(self._keep(parts, inside))
                    parts, inside, size = [], [], 0
                parts.append(part)
                inside.extend(operations)
                size += len(part)
        if parts:
            taken.append(self._keep(parts, inside))
        if self._large and self._large_unanswered < _LARGE_UNANSWERED:
            taken.append(self._take_large())
        return taken

    def _take_large(self) -> bytes:
        port, part, operations = self._large.popleft()
        self._large_ports[port] -= 1
        if not self._large_ports[port]:
            del self._large_ports[port]
        if self._large:
            self._wake()
        data = self._keep([part], operations)
        self._messages[-1].is_large = True
        self._large_unanswered += 1
        return data

    def _keep(self, parts: list[bytes], inside: list[Sent]) -> bytes:
        message = Message(b"".join(parts), len(inside))
        for sent in inside:
            sent.message = message
        self._messages.append(message)
        return message.data

    def take_too_large(self) -> list[pb.OperationAnswer]:
        """Operations that no server would read, as the refusals they would get."""
        too_large, self._too_large = self._too_large, []
        return [_refuse_too_large(sent, part) for sent, part in too_large]

    def unanswered(self) -> list[Message]:
        """Everything to be sent again after a reconnect, in order. What only concerns runs that are gone is
        forgotten."""
        for sent in [sent for sent in self._sent.values() if not sent.port.is_open]:
            self.answered(sent.id)
        return [message for message in self._messages if message.unanswered]

    def ports_of(self, message: Message) -> list[OutPort]:
        """The runs with operations in this message that were not answered."""
        return list(dict.fromkeys(sent.port for sent in self._sent.values() if sent.message is message))

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, id: int) -> Sent | None:
        """The operation with this number, if it was not answered before."""
        sent = self._sent.pop(id, None)
        if sent is not None and sent.message is not None:
            message, messages = sent.message, self._messages
            message.unanswered -= 1
            if not message.unanswered:
                message.data = b""  # it may stay behind an older one for a while
                if message.settled is not None:
                    message.settled.set()
                if message.is_large:
                    self._large_unanswered -= 1
                    if self._large:
                        self._wake()
            while messages and not messages[0].unanswered:
                messages.popleft()
        return sent

    def drop(self, port: OutPort) -> None:
        """Forget what the run has not sent yet."""
        self._waiting.pop(port, None)
        port.group = None
        for sent in port.fresh:
            self._sent.pop(sent.id, None)
        port.fresh = []
        if self._large_ports.pop(port, 0):
            for _, _, operations in [each for each in self._large if each[0] is port]:
                for sent in operations:
                    self._sent.pop(sent.id, None)
            self._large = deque(each for each in self._large if each[0] is not port)


def _refuse_too_large(sent: Sent, part: bytes) -> pb.OperationAnswer:
    [run] = pb.SessionRequest.FromString(part).runs
    kind = run.operations[0].WhichOneof("kind")
    message = (
        f"the operation {kind} takes {len(part)} bytes; a server reads {limits.MESSAGE_HARD_BYTES} "
        "(MESSAGE_HARD_BYTES) at once. "
        "Pass less data, or wait for fewer things at a time."
    )
    refused = common_pb2.ErrorDetail(
        code=common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED,
        kind=common_pb2.ERROR_KIND_PERMANENT,
        message=message,
        non_retryable=True,
        metadata=limit_reached("message_bytes", limits.MESSAGE_HARD_BYTES),
    )
    return pb.OperationAnswer(id=sent.id, refused=refused)


def _parts(port: OutPort) -> Iterable[tuple[bytes, list[Sent]]]:
    """A run's part of a message; several if it is too big for one."""
    group, fresh = port.group, port.fresh
    port.group, port.fresh, port.is_due = None, [], False
    if group is None:
        return
    body = group.SerializeToString()
    if len(body) <= limits.MESSAGE_SOFT_BYTES or len(fresh) == 1:
        yield field(RUNS_TAG, body, port.proof), fresh
        return
    pieces: list[bytes] = []
    inside: list[Sent] = []
    size = 0
    for operation, sent in zip(group.operations, fresh, strict=True):
        piece = field(_OPERATION_TAG, operation.SerializeToString())
        if pieces and size + len(piece) > limits.MESSAGE_SOFT_BYTES:
            yield field(RUNS_TAG, b"".join(pieces), port.proof), inside
            pieces, inside, size = [], [], 0
        pieces.append(piece)
        inside.append(sent)
        size += len(piece)
    yield field(RUNS_TAG, b"".join(pieces), port.proof), inside

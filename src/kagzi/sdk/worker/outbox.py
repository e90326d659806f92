"""The outgoing messages: the one being filled, and those that were sent but are not fully acknowledged.

Executions write operations directly into their run's part of the next message. A message is joined from encoded parts
and kept, byte for byte, until each of its operations is acknowledged: the same bytes are sent again after a reconnect.

The begin of a step is held back briefly. If its completion follows in time, both are sent as one operation in the place
of the begin (`OutPort.complete`), if the server supports that; for an older server they are split into two.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable

import msgspec

from ...core import limits
from ...v1 import worker_pb2 as pb
from ...wire.worker_messages import begin_and_completion
from ..execution.ports import Execution, Fill, OnAnswer
from ..transport.payload_codec import MessageCodec
from .unsent import encode_operations, refuse_too_large

# Field tags of SessionRequest and RunOperations. Parts of a protobuf message may be encoded separately and joined.
RUNS_TAG = b"\x12"
HEARTBEAT_TAG = b"\x1a"
RECEIVED_TAG = b"\x22"
_OPERATION_TAG = b"\x1a"
AT_ONCE_BYTES = 256 * limits.KIB
_MESSAGE_BYTES = limits.MESSAGE_UNCOUNTED_BYTES - limits.KIB  # no server refuses it for the number of its elements
_LARGE_UNANSWERED = 4
_LARGEST_PART_BYTES = limits.MESSAGE_HARD_BYTES - limits.KIB  # a part may be a message by itself


def field(tag: bytes, body: bytes, head: bytes = b"") -> bytes:
    """One length-delimited field with `head` and `body`. `body` may be large and is copied only once."""
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
        self.settled: asyncio.Event | None = None  # set by a task that waits until all of them are answered


class Sent(msgspec.Struct, eq=False):
    """An operation that has not been answered yet."""

    id: int
    port: "OutPort"
    on_answer: OnAnswer | None
    numbers: int = 1  # how many seqs it takes in its run; the last one is acknowledged
    message: Message | None = None


class OutPort:
    """The outgoing half of a leased run's port."""

    def __init__(self, outbox: "Outbox", run_id: str, lease: tuple[int, int], proof: bytes, last_seq: int = 0) -> None:
        """`proof`: run_id and lease, encoded; they are fields 1 and 2 of both RunOperations and LeasedRun."""
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
        self._begins: dict[str, tuple[pb.Operation, Sent, Fill]] = {}  # by step, while a completion may be merged
        self._outbox = outbox

    def acknowledged(self, seq: int, numbers: int = 1) -> None:
        """An operation of this run was recorded as `seq`, the last of `numbers` seqs. Acknowledgements arrive in the
        order of seq."""
        if seq > self.last_seq:
            if seq - numbers > self.last_seq:
                self.foreign_seq = seq - numbers
            self.last_seq = seq

    def announce(self) -> pb.Operation:
        if not self.is_open:
            return pb.Operation()
        if self._begins:
            self.fill_begins()
        if self.group is None:
            self._outbox.hold(self)
        return self._add(None)[0]

    def begin(self, step_id: str, fill: Fill) -> None:
        if not self.is_open:
            return
        if self.group is None:
            self._outbox.hold(self)
        self._begins[step_id] = (*self._add(None), fill)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        if not self.is_open:
            return pb.Operation()
        if self._begins:
            self.fill_begins()
        if not self.is_due:
            self._outbox.due(self)
        return self._add(on_answer)[0]

    def complete(self, step_id: str, on_answer: OnAnswer) -> tuple[pb.Operation, bool]:
        if not self.is_open:
            return pb.Operation(), False
        if not self.is_due:
            self._outbox.due(self)
        begun = self._begins.pop(step_id, None)
        if begun is None:
            return self._add(on_answer)[0], False
        operation, sent, fill = begun
        if not self._outbox.records_whole_steps:
            fill(operation)
            return self._add(on_answer)[0], False
        sent.on_answer = on_answer
        sent.numbers = 2
        return operation, True

    def fill_begins(self) -> None:
        """Fill the held begins: they are sent or followed by another operation, so no completion can be merged."""
        for operation, _, fill in self._begins.values():
            fill(operation)
        self._begins.clear()

    def forget(self) -> None:
        """Drop operations that have not been sent."""
        self.group = None
        self.fresh = []
        self._begins.clear()

    def _add(self, on_answer: OnAnswer | None) -> tuple[pb.Operation, Sent]:
        group = self.group
        if group is None:
            group = self.group = pb.RunOperations()
        operation = group.operations.add()
        sent = self._outbox.number(self, on_answer)
        operation.id = sent.id
        self.fresh.append(sent)
        return operation, sent


class Outbox:
    """`wake` is called when something must be sent at the end of this event loop iteration, `start_hold` when something
    may be held back briefly."""

    def __init__(
        self, wake: Callable[[], None], start_hold: Callable[[], None], codec: MessageCodec | None = None
    ) -> None:
        self._codec = codec
        self._wake = wake
        self._start_hold = start_hold
        self.records_whole_steps = False  # whether the server supports begin and completion in one operation
        self._last_id = 0
        self._due: list[OutPort] = []
        self._waiting: dict[OutPort, None] = {}
        self._sent: dict[int, Sent] = {}
        self._messages: deque[Message] = deque()
        self._too_large: list[tuple[Sent, bytes]] = []
        self._not_encoded: list[pb.OperationAnswer] = []
        self.at_once_bytes = AT_ONCE_BYTES  # a larger part of a run becomes a message of its own; others are joined
        self._large: deque[tuple[OutPort, bytes, list[Sent]]] = deque()
        self._large_ports: Counter[OutPort] = Counter()  # until they are written
        self._being_written: OutPort | None = None
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
        """Send the operations that were held back."""
        for port in tuple(self._waiting):
            self.due(port)

    # --- sending ------------------------------------------------------------------------------------------------------

    def take(self) -> list[bytes]:
        """Operations that are due, as messages of about `at_once_bytes`, and of _MESSAGE_BYTES unless a single part is
        larger, kept until answered. Large parts, and later operations of their runs, wait for `take_large`."""
        due, self._due = self._due, []
        taken: list[bytes] = []
        parts: list[bytes] = []
        inside: list[Sent] = []
        size = 0
        for port in due:
            if self._codec is not None:
                self._encode(self._codec, port)
            for part, operations in _parts(port):
                if len(part) > _LARGEST_PART_BYTES:
                    self._too_large.extend((sent, part) for sent in operations)  # one: several would have been split
                    continue
                if len(part) > self.at_once_bytes or (self._large_ports and port in self._large_ports):
                    self._large.append((port, part, operations))
                    self._large_ports[port] += 1
                    continue
                if parts and size + len(part) > min(self.at_once_bytes, _MESSAGE_BYTES):
                    taken.append(self._keep(parts, inside))
                    parts, inside, size = [], [], 0
                parts.append(part)
                inside.extend(operations)
                size += len(part)
        if parts:
            taken.append(self._keep(parts, inside))
        return taken

    @property
    def has_large(self) -> bool:
        return bool(self._large) and self._large_unanswered < _LARGE_UNANSWERED

    def _encode(self, codec: MessageCodec, port: OutPort) -> None:
        port.fill_begins()
        refusals = [] if port.group is None else encode_operations(codec, port.group)
        if refusals:
            refused = {each.id for each in refusals}
            port.fresh = [sent for sent in port.fresh if sent.id not in refused]
            self._not_encoded += refusals

    def take_large(self) -> bytes:
        """Until `large_written`, operations of other runs may be sent, and later ones of the same run stay behind."""
        self._being_written, part, operations = self._large.popleft()
        data = self._keep([part], operations)
        self._messages[-1].is_large = True
        self._large_unanswered += 1
        return data

    def large_written(self) -> None:
        if self._being_written is not None:
            self._large_ports -= Counter((self._being_written,))  # leaves out those that have no more
            self._being_written = None
        if self._large:
            self._wake()

    def _keep(self, parts: list[bytes], inside: list[Sent]) -> bytes:
        message = Message(b"".join(parts), len(inside))
        for sent in inside:
            sent.message = message
        self._messages.append(message)
        return message.data

    @property
    def has_refusals(self) -> bool:
        return bool(self._too_large or self._not_encoded)

    def take_refusals(self) -> list[pb.OperationAnswer]:
        """Refusals for operations that are too large for any server, or that the codec could not encode."""
        too_large, self._too_large = self._too_large, []
        not_encoded, self._not_encoded = self._not_encoded, []
        return [*(refuse_too_large(sent.id, part) for sent, part in too_large), *not_encoded]

    def unanswered(self) -> list[Message]:
        """All messages to send again after a reconnect, in order. Operations of runs that this worker no longer holds
        are dropped."""
        for sent in [sent for sent in self._sent.values() if not sent.port.is_open]:
            self.answered(sent.id)
        if not self.records_whole_steps:
            self._divide()
        return [message for message in self._messages if message.unanswered]

    def _divide(self) -> None:
        """Split operations that combine a begin and a completion, which this server does not support, in kept messages
        and in unsent parts."""
        for message in self._messages:
            message.data = self._divided(message.data, message)
        self._large = deque((port, *self._divided_part(part, inside)) for port, part, inside in self._large)
        for port in (*self._due, *self._waiting):
            if port.group is not None and port.is_open:
                port.fill_begins()
                operations = self._divided_operations(port.group.operations, None)
                port.fresh = [self._sent[each.id] for each in operations]
                port.group = pb.RunOperations(operations=operations)

    def _divided_part(self, part: bytes, inside: list[Sent]) -> tuple[bytes, list[Sent]]:
        part = self._divided(part, None)
        ids = [each.id for run in pb.SessionRequest.FromString(part).runs for each in run.operations]
        return part, [self._sent[number] for number in ids if number in self._sent]

    def _divided(self, data: bytes, message: Message | None) -> bytes:
        request = pb.SessionRequest.FromString(data)
        if not any(each.HasField("record_step") for run in request.runs for each in run.operations):
            return data
        for run in request.runs:
            operations = self._divided_operations(run.operations, message)
            del run.operations[:]
            run.operations.extend(operations)
        return request.SerializeToString()

    def _divided_operations(self, operations: Iterable[pb.Operation], message: Message | None) -> list[pb.Operation]:
        divided: list[pb.Operation] = []
        for operation in operations:
            if not operation.HasField("record_step"):
                divided.append(operation)
                continue
            begin, completion = begin_and_completion(operation)
            self._number_begin(begin, message)
            divided += (begin, completion)
        return divided

    def _number_begin(self, begin: pb.Operation, message: Message | None) -> None:
        """Give the begin a new id. If the combined operation was answered, the answers to both parts are ignored."""
        if (sent := self._sent.get(begin.id)) is not None:
            sent.numbers = 1
            half = self.number(sent.port, None)
            half.message, begin.id = message, half.id
            if message is not None:
                message.unanswered += 1

    def ports_of(self, message: Message) -> list[OutPort]:
        """The runs with unanswered operations in this message."""
        return list(dict.fromkeys(sent.port for sent in self._sent.values() if sent.message is message))

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, id: int) -> Sent | None:
        """The operation with this id, unless it was answered before."""
        sent = self._sent.pop(id, None)
        if sent is not None and sent.message is not None:
            message, messages = sent.message, self._messages
            message.unanswered -= 1
            if not message.unanswered:
                message.data = b""  # it may stay queued behind an older one for a while
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
        for sent in port.fresh:
            self._sent.pop(sent.id, None)
        port.forget()
        if self._large_ports.pop(port, 0):
            for _, _, operations in [each for each in self._large if each[0] is port]:
                for sent in operations:
                    self._sent.pop(sent.id, None)
            self._large = deque(each for each in self._large if each[0] is not port)


def _parts(port: OutPort) -> Iterable[tuple[bytes, list[Sent]]]:
    """A run's part of a message, or several if it is too large for one."""
    port.fill_begins()
    group, fresh = port.group, port.fresh
    port.group, port.fresh, port.is_due = None, [], False
    if group is None or not fresh:
        return ()
    body = group.SerializeToString()
    if len(body) <= _MESSAGE_BYTES or len(fresh) == 1:
        return ((field(RUNS_TAG, body, port.proof), fresh),)
    return _pieces(port, group, fresh)


def _pieces(port: OutPort, group: pb.RunOperations, fresh: list[Sent]) -> Iterable[tuple[bytes, list[Sent]]]:
    pieces, inside, size = list[bytes](), list[Sent](), 0
    for operation, sent in zip(group.operations, fresh, strict=True):
        piece = field(_OPERATION_TAG, operation.SerializeToString())
        if pieces and size + len(piece) > _MESSAGE_BYTES:
            yield field(RUNS_TAG, b"".join(pieces), port.proof), inside
            pieces, inside, size = [], [], 0
        pieces.append(piece)
        inside.append(sent)
        size += len(piece)
    yield field(RUNS_TAG, b"".join(pieces), port.proof), inside

"""The points at which a worker can be killed: around each body, and around each operation that it sends.

The listener gets every boundary, in order, and may kill the workers there.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ...v1 import worker_pb2 as pb
from ...wire.calls.call import ClientEnd, Metadata, OpenCall

SESSION = "/kagzi.v1.WorkerService/Session"
_STEPS = {"begin_step", "record_step", "complete_step", "fail_step", "step_heartbeat"}


class Boundary(NamedTuple):
    """`what`: "body", "begin" (a step's announcement), or the kind of an operation (`record_step`, `complete_step`,
    `fail_step`, `sleep`, `finish_sleep`, `wait_signal`, `start_child`, `race`, `patch`, `park`, `complete_run`,
    `fail_run`, ...). `when`: for a body, "before" it is called or "after" it has returned or raised; for an operation,
    "before" it leaves the worker or "after" it is durable but not yet acknowledged to the worker.

    `step_id` is empty for operations of the run itself; `attempt` is 0 where it does not apply.
    """

    what: str
    when: Literal["before", "after"]
    run_id: str
    step_id: str = ""
    attempt: int = 0


OnBoundary = Callable[[Boundary], None]


class ObservedCalls:
    """An OpenCall whose sessions report boundaries to `on_boundary`. After `break_off`, nothing that is sent arrives
    and no response is received."""

    def __init__(self, open_call: OpenCall, on_boundary: Callable[[Boundary], None]) -> None:
        self._open_call = open_call
        self._on_boundary = on_boundary
        self._is_broken = False
        self._sent: dict[int, Boundary] = {}  # by operation id

    def break_off(self) -> None:
        self._is_broken = True

    def __call__(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> ClientEnd:
        end = self._open_call(path, metadata, timeout_s, request)
        if path == SESSION:
            self._observe(end)
        return end

    def _observe(self, end: ClientEnd) -> None:
        send, receive = end.send, end.on_message

        def send_observed(data: bytes) -> None:
            for boundary in self._operations(data):
                if not self._is_broken:
                    self._on_boundary(boundary)
            if not self._is_broken:
                send(data)

        def receive_observed(data: bytes) -> None:
            for boundary in self._answers(data):
                if not self._is_broken:
                    self._on_boundary(boundary)
            if not self._is_broken:
                receive(data)

        observed: Any = end
        observed.send, observed.on_message = send_observed, receive_observed

    def _operations(self, data: bytes) -> list[Boundary]:
        boundaries: list[Boundary] = []
        for of_run in pb.SessionRequest.FromString(data).runs:
            for operation in of_run.operations:
                what = operation.WhichOneof("kind")
                if what is None:
                    continue
                detail = getattr(operation, what)
                step_id = getattr(detail, "step_id", "")
                attempt = detail.attempt if what in _STEPS else 0
                boundary = Boundary(what, "before", of_run.run_id, step_id, attempt)
                self._sent[operation.id] = boundary._replace(when="after")
                boundaries.append(boundary)
        return boundaries

    def _answers(self, data: bytes) -> list[Boundary]:
        response = pb.SessionResponse.FromString(data)
        ids = [each for acknowledged in response.acknowledged for each in acknowledged.ids]
        ids += [answer.id for answer in response.answers]
        return [self._sent.pop(each) for each in ids if each in self._sent]

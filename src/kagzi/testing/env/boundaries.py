"""Where a worker can be struck: around each body, and around each operation that it sends.

Who listens is told of every boundary, in the order in which they are come to, and may kill the workers there.
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
    `fail_run`, ...). `when`: of a body "before" it is called and "after" it has returned or raised; of an operation
    "before" it has left the worker, and "after" it is durable and before the worker has heard of it.

    `step_id` is empty for operations of the run itself; `attempt` is 0 where it does not apply.
    """

    what: str
    when: Literal["before", "after"]
    run_id: str
    step_id: str = ""
    attempt: int = 0


OnBoundary = Callable[[Boundary], None]


class ObservedCalls:
    """An OpenCall whose sessions tell `on_boundary` what passes. What is sent after `break_off` never arrives, and
    what is answered is not received."""

    def __init__(self, open_call: OpenCall, on_boundary: Callable[[Boundary], None]) -> None:
        self._open_call = open_call
        self._on_boundary = on_boundary
        self._is_broken = False
        self._sent: dict[int, Boundary] = {}  # by the id of the operation

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

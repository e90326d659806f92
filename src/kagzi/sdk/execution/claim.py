"""A worker's claim on a run: the task with its lease, the port to the server, and the operations in flight."""

import asyncio
from dataclasses import dataclass
from functools import partial

from ...core.checks.refused_requests import error_of
from ...core.errors import InternalError, KagziError
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ...wire.common import read_error
from .ports import Answer, OnAnswer, RunPort, Timers


@dataclass(slots=True, eq=False)
class Claim:
    """The claim of one run; renewed when the run returns to the worker that cached its coroutine."""

    task: pb.Task
    port: RunPort
    loop: asyncio.AbstractEventLoop
    timers: Timers  # the event loop, unless a test has its own time
    accepted_at: float  # in the time of the timers
    in_flight: int = 0  # operations sent and not answered
    ahead: str = ""  # the step whose result is already used but not acknowledged

    def renew(self, task: pb.Task, port: RunPort, accepted_at: float) -> None:
        self.task = task
        self.port = port
        self.accepted_at = accepted_at

    def server_now_us(self) -> int:
        """The server's time, estimated from the time of the claim. Used only to wait, never to decide."""
        return self.task.claimed_at_us + int((self.timers.time() - self.accepted_at) * 1_000_000)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        """A new operation, to be filled in at once. It is in flight until it is answered."""
        self.in_flight += 1
        return self.port.send(partial(self._answered, on_answer))

    def _answered(self, on_answer: OnAnswer, answer: Answer) -> None:
        self.in_flight -= 1
        on_answer(answer)


def error_of_refusal(refusal: common.ErrorDetail) -> KagziError:
    """The refusal as an error of the run. Others than those of arguments and limits come from a history that is not as
    it should be."""
    if refusal.code in (common.ERROR_CODE_RESOURCE_EXHAUSTED, common.ERROR_CODE_INVALID_ARGUMENT):
        return error_of(read_error(refusal))
    return InternalError(f"the server refused an operation: {refusal.message}", metadata=refusal.metadata)

"""A worker's claim on a run: the task with its lease, the way to the server, and what is on that way."""

import asyncio
from dataclasses import dataclass
from functools import partial

from ...core.errors import InternalError, InvalidArgument, KagziError, ResourceExhausted
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from .ports import Answer, OnAnswer, RunPort, Timers


@dataclass(slots=True, eq=False)
class Claim:
    """Of one run; renewed when the run comes back to the worker that keeps its coroutine."""

    task: pb.Task
    port: RunPort
    loop: asyncio.AbstractEventLoop
    timers: Timers  # the loop, unless its time is not the one that counts
    accepted_at: float  # in the time of the timers
    in_flight: int = 0  # operations sent and not answered
    ahead: str = ""  # the step whose result is used already and not yet acknowledged

    def renew(self, task: pb.Task, port: RunPort, accepted_at: float) -> None:
        self.task = task
        self.port = port
        self.accepted_at = accepted_at

    def server_now_us(self) -> int:
        """The server's time, as far as it can be told from the time of the claim. Never used to decide, only to
        wait."""
        return self.task.claimed_at_us + int((self.timers.time() - self.accepted_at) * 1_000_000)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        """A new operation, to be filled in at once. Until it is answered the run has something in flight."""
        self.in_flight += 1
        return self.port.send(partial(self._answered, on_answer))

    def _answered(self, on_answer: OnAnswer, answer: Answer) -> None:
        self.in_flight -= 1
        on_answer(answer)


def error_of_refusal(refusal: common.ErrorDetail) -> KagziError:
    """What the server refused, as an error of the run."""
    if refusal.code == common.ERROR_CODE_RESOURCE_EXHAUSTED:
        return ResourceExhausted(refusal.message, metadata=refusal.metadata)
    if refusal.code == common.ERROR_CODE_INVALID_ARGUMENT:
        return InvalidArgument(refusal.message, field=refusal.subject_id, metadata=refusal.metadata)
    return InternalError(f"the server refused an operation: {refusal.message}", metadata=refusal.metadata)

"""The runs that are leased to a worker, and the server's answers and notices about them."""

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from ...core.errors import REASON
from ...v1 import common_pb2
from ...v1 import worker_pb2 as pb
from ...v1.workflow_pb2 import WORKFLOW_STATUS_COMPLETED, WORKFLOW_STATUS_FAILED
from ..execution.ports import GONE, Answer, OnAnswer
from .lease_clock import LeaseClock
from .outbox import Outbox, OutPort, Sent
from .ports import Executor

logger = logging.getLogger("kagzi.worker")

_WARNINGS = 1_000

FetchHistory = Callable[[str, common_pb2.Lease, int, int], Awaitable[Sequence[pb.HistoryStep]]]

# Errors that every retry would get again: the run itself has to fail.
_HOPELESS = frozenset({common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED, common_pb2.ERROR_CODE_INVALID_ARGUMENT})
_AFTER_EVERYTHING = 1 << 63


class SendAgain(Exception):
    """The server could not record an operation now. It must be sent again, as after a reconnect."""


class Port(OutPort):
    """The port of one leased run. Implements execution.ports.RunPort."""

    def __init__(self, runs: "LeasedRuns", task: pb.Task) -> None:
        lease = task.lease
        proof = pb.LeasedRun(run_id=task.run_id, lease=lease).SerializeToString()
        super().__init__(runs.outbox, task.run_id, (lease.counter, lease.nonce), proof, task.last_seq)
        self._accepted_at = runs.clock.now()
        self._requested_at = -math.inf
        self.late_for_cancel = False  # an announced operation was refused because the run is being cancelled
        self._runs = runs

    def fetch_history(self, after: int, known_seq: int = 0) -> Awaitable[Sequence[pb.HistoryStep]]:
        counter, nonce = self.lease
        lease = common_pb2.Lease(counter=counter, nonce=nonce)
        return self._runs.fetch_history(self.run_id, lease, after, known_seq)

    def lease_is_over(self) -> bool:
        return self._runs.clock.is_over(self._accepted_at, self._requested_at)

    def ask_about_lease(self) -> Callable[[], None]:
        return partial(self._lease_kept, self._runs.clock.now())

    def _lease_kept(self, requested_at: float) -> None:
        self._requested_at = requested_at

    def close(self) -> None:
        self._runs.forget(self)


class LeasedRuns:
    """Passes claimed runs to the executor and answers to the runs, and drops lost runs."""

    def __init__(self, outbox: Outbox, executor: Executor, fetch_history: FetchHistory) -> None:
        self.outbox = outbox
        self.clock = LeaseClock()
        self.fetch_history = fetch_history
        self.completed = 0
        self.failed = 0
        self._executor = executor
        self._ports: dict[str, Port] = {}
        self._warned: set[str] = set()

    def __len__(self) -> int:
        return len(self._ports)

    def proofs(self) -> list[bytes]:
        """Encoded LeasedRun messages of all runs. May be called from another thread."""
        return [port.proof for port in list(self._ports.values())]

    # --- runs ---------------------------------------------------------------------------------------------------------

    def accept(self, task: pb.Task) -> bytes:
        """Take a claimed run. Returns the proof to acknowledge it with."""
        present = self._ports.get(task.run_id)
        if present is not None:
            if present.lease == (task.lease.counter, task.lease.nonce):
                return present.proof
            self.abandon(present, "the run was claimed again")
        port = self._ports[task.run_id] = Port(self, task)
        port.execution = self._executor.accept(task, port)
        return port.proof

    def abandon(self, port: OutPort, reason: str) -> None:
        self.outbox.drop(port)
        self._abandon_execution(port, reason)

    def _abandon_execution(self, port: OutPort, reason: str) -> None:
        if not port.is_open:
            return
        execution = port.execution
        self._close(port)
        logger.debug("run %s is no longer leased to this worker: %s", port.run_id, reason)
        if execution is not None:
            execution.abandon(reason)

    def forget(self, port: OutPort) -> None:
        """The execution of this run is over."""
        if port.is_open:
            self._close(port)

    def _close(self, port: OutPort) -> None:
        port.is_open = False
        port.execution = None  # breaks the reference cycle
        if self._ports.get(port.run_id) is port:
            del self._ports[port.run_id]

    def lost(self, runs: Iterable[pb.LeasedRun]) -> None:
        for each in runs:
            port = self._find(each.run_id, each.lease)
            if port is not None:
                self.abandon(port, "its lease was lost")

    def notice(self, notice: pb.RunNotice) -> None:
        if notice.kind == pb.RUN_NOTICE_KIND_WARNING:
            self._warn(notice)
            return
        port = self._find(notice.run_id, notice.lease)
        if port is None or port.execution is None:
            return
        match notice.kind:
            case pb.RUN_NOTICE_KIND_LEASE_LOST:
                self.abandon(port, notice.reason or "its lease was lost")
            case pb.RUN_NOTICE_KIND_CANCEL_REQUESTED:
                port.execution.cancel(notice.reason)
            case pb.RUN_NOTICE_KIND_PAUSE_REQUESTED:
                port.execution.pause(notice.reason)
            case pb.RUN_NOTICE_KIND_RESULT:
                port.execution.results_available()
            case _:
                logger.debug("run %s: a notice of kind %d is unknown to this SDK", notice.run_id, notice.kind)

    def _warn(self, notice: pb.RunNotice) -> None:
        """Logs the same warning once: a run may start many children of one name."""
        if notice.reason in self._warned:
            return
        if len(self._warned) >= _WARNINGS:
            self._warned.clear()
        self._warned.add(notice.reason)
        logger.warning("run %s: %s", notice.run_id, notice.reason)

    def _find(self, run_id: str, lease: common_pb2.Lease) -> Port | None:
        port = self._ports.get(run_id)
        return port if port is not None and port.lease == (lease.counter, lease.nonce) else None

    # --- answers ------------------------------------------------------------------------------------------------------

    def answers(self, response: pb.SessionResponse) -> None:
        """Deliver the answers in the order of their commits. Raises SendAgain."""
        if response.answers and response.acknowledged:
            self._mixed_answers(response)
            return
        for commit in response.acknowledged:
            at_us = commit.at_us
            for number, seq in zip(commit.ids, commit.seqs, strict=True):
                self._acknowledge(number, seq, at_us)
        for answer in response.answers:
            self._answer(answer)

    def refuse(self, answers: Iterable[pb.OperationAnswer]) -> None:
        """Deliver refusals of operations that are refused locally, because no server would accept them."""
        for answer in answers:
            self._answer(answer)

    def _mixed_answers(self, response: pb.SessionResponse) -> None:
        """Merges the two lists by seq, which keeps each run's order. Refusals have no seq and come last."""
        ordered: list[tuple[int, int, int, pb.OperationAnswer | None]] = [
            (seq, number, commit.at_us, None)
            for commit in response.acknowledged
            for number, seq in zip(commit.ids, commit.seqs, strict=True)
        ]
        ordered.extend((answer.seq or _AFTER_EVERYTHING, answer.id, 0, answer) for answer in response.answers)
        ordered.sort(key=lambda each: each[:2])
        for seq, number, at_us, answer in ordered:
            if answer is None:
                self._acknowledge(number, seq, at_us)
            else:
                self._answer(answer)

    def _acknowledge(self, number: int, seq: int, at_us: int) -> None:
        sent = self.outbox.answered(number)
        if sent is None or not sent.port.is_open:
            return
        sent.port.acknowledged(seq, sent.numbers)
        if sent.on_answer is not None:
            try:  # `_report` inlined: saves a call for each step
                sent.on_answer(Answer(seq, at_us, None))
            except Exception as error:  # noqa: BLE001  logged there
                self._unprocessed(sent.port, error)

    def _answer(self, answer: pb.OperationAnswer) -> None:
        kind = answer.WhichOneof("kind")
        if kind == "refused" and answer.refused.code == common_pb2.ERROR_CODE_UNAVAILABLE:
            raise SendAgain(answer.refused.message)
        sent = self.outbox.answered(answer.id)
        if sent is None or not sent.port.is_open:
            return
        if kind == "refused" and self._is_final_refusal(sent, answer.refused):
            return
        sent.port.acknowledged(answer.seq, sent.numbers)
        if kind == "closed":
            self.completed += answer.closed.status == WORKFLOW_STATUS_COMPLETED
            self.failed += answer.closed.status == WORKFLOW_STATUS_FAILED
        if sent.on_answer is not None:
            self._report(sent.port, sent.on_answer, Answer(answer.seq, answer.at_us, answer))

    def _is_final_refusal(self, sent: Sent, error: common_pb2.ErrorDetail) -> bool:
        """Whether the refusal ends this worker's hold of the run. Otherwise it is passed to the execution."""
        if error.code in GONE:
            self.abandon(sent.port, error.message)
            return True
        if sent.on_answer is not None:
            if error.code == common_pb2.ERROR_CODE_PRECONDITION_FAILED and _is_late_for_cancel(sent.port):
                error.code = common_pb2.ERROR_CODE_CANCELLED  # the completion of a step whose begin was refused
            return False
        if error.code == common_pb2.ERROR_CODE_CANCELLED:
            self._report_cancel(sent.port, error.metadata.get(REASON, ""))
            return True
        self.outbox.drop(sent.port)
        if error.code == common_pb2.ERROR_CODE_INTERNAL and sent.port.execution is not None:
            sent.port.execution.server_failed(error.message)
            return True
        if error.code in _HOPELESS:
            sent.port.send(_ignore).fail_run.error.MergeFrom(error)
        self._abandon_execution(sent.port, error.message)
        return True

    def _report_cancel(self, port: OutPort, reason: str) -> None:
        """A step was announced before this worker knew of the cancellation: the refusal tells the execution."""
        if isinstance(port, Port):
            port.late_for_cancel = True
        if port.execution is not None:
            port.execution.cancel(reason)

    def _report(self, port: OutPort, on_answer: OnAnswer, answer: Answer) -> None:
        try:
            on_answer(answer)
        except Exception as error:  # noqa: BLE001  logged there
            self._unprocessed(port, error)

    def _unprocessed(self, port: OutPort, error: Exception) -> None:
        logger.error("run %s: a response could not be processed; the run is abandoned", port.run_id, exc_info=error)
        self.abandon(port, "a response could not be processed")


def _is_late_for_cancel(port: OutPort) -> bool:
    return isinstance(port, Port) and port.late_for_cancel


def _ignore(_: Answer) -> None: ...

"""WorkerService: the operations of workers, as single calls or on one stream. Both build the same commands for the
engine."""

from google.protobuf.empty_pb2 import Empty

from ....core import limits
from ....core.errors import InvalidArgument, LeaseLost, NotFound
from ....core.limits import Settings
from ....core.providers import Clock
from ....core.records import Lease, RunKey, RunLease
from ....core.run.outcomes import (
    Begun,
    Known,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    StepFailed,
)
from ....core.states import StepStatus
from ....core.times import US_PER_MS
from ....engine import Engine, error_of
from ....v1 import worker_pb2 as pb
from ....wire.common import (
    read_duration_ms,
    read_leased,
    read_type,
    write_error,
    write_leased,
    write_payload_if,
    write_time,
    write_time_if,
)
from ....wire.enums import RUN_STATUS_TO_WIRE, STEP_KIND_FROM_WIRE
from ....wire.operations import read_operation
from ....wire.schemas import read_schemas
from ....wire.steps import read_step_logs, write_step
from ....wire.tasks import write_history_page, write_history_step, write_task
from ....wire.worker_messages import RunRequest, operation_of, read_lease_of, read_run_key
from ....wire.workers import read_diagnostics, read_register
from ..answer_budget import Answers
from ..connections import PEER, Connections
from ..deadlines import Deadlines
from ..incomplete import IncompleteMessages
from ..interceptor import Context, read_message
from ..require import require
from ..session import SessionStream
from ..unread import Unread
from .beginning import raise_unless_completed
from .sleeping import sleep
from .waiting import start_child, wait_signal

_MS_PER_S = 1_000


class WorkerService:
    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock,
        settings: Settings,
        deadlines: Deadlines,
        answers: Answers,
        connections: Connections,
        version: str,
    ) -> None:
        self._connections = connections
        self._engine = engine
        self._tasks = engine.tasks
        self._workers = engine.workers
        self._clock = clock
        self._settings = settings
        self._deadlines = deadlines
        self._answers = answers
        self._version = version
        self._unread = Unread(settings.unread_total_bytes)
        self._incomplete = IncompleteMessages()

    # --- lifecycle ----------------------------------------------------------------------------------------------------

    async def Register(self, request: pb.RegisterRequest) -> pb.RegisterResponse:
        worker = await self._workers.register(read_register(request), read_schemas(request))
        self._connections.registered(PEER.get()(), worker.namespace, worker.worker_id)
        return pb.RegisterResponse(
            worker_id=worker.worker_id,
            heartbeat_interval_secs=-(-self._settings.heartbeat_ms // _MS_PER_S),
            heartbeat_interval_ms=self._settings.heartbeat_ms,
            lease_ms=self._settings.lease_ms,
        )

    async def Heartbeat(self, request: pb.HeartbeatRequest) -> pb.HeartbeatResponse:
        namespace, peer = request.namespace_id, PEER.get()()
        leased = [read_leased(run, namespace) for run in request.leased]
        if leased:
            self._connections.names_leases(peer, worker_id=request.worker_id)
        else:
            retry_after = self._clock.now() - self._settings.lease_ms * US_PER_MS
            leased = self._connections.leased_by(peer, namespace, request.worker_id, retry_after)
        answer = await self._workers.heartbeat(
            namespace,
            request.worker_id,
            active_count=request.active_count,
            completed_delta=request.completed_delta,
            failed_delta=request.failed_delta,
            leased=leased,
            diagnostics=read_diagnostics(request),
        )
        self._connections.lost(peer, answer.lost)
        if answer.accepted:
            self._workers.step_logs.add(read_step_logs(request.step_logs, namespace))
        return pb.HeartbeatResponse(
            accepted=answer.accepted,
            should_drain=answer.should_drain,
            lost=[write_leased(run) for run in answer.lost],
            cancel_requested=[run.run_id for run in answer.cancel_requested],
        )

    async def Deregister(self, request: pb.DeregisterRequest) -> Empty:
        await self._workers.deregister(request.namespace_id, request.worker_id, drain=request.drain)
        return Empty()

    # --- execution, single calls --------------------------------------------------------------------------------------

    async def PollTask(self, request: pb.PollTaskRequest, remaining_s: float | None) -> pb.PollTaskResponse:
        namespace, workflow_types = request.namespace_id, [*map(read_type, request.workflow_types)]
        queue = read_type(request.task_queue)
        if queue in workflow_types:  # another name for a type: polls for this one only
            workflow_types = [queue]
        claimed = await self._deadlines.poll(
            lambda wait_ms: self._tasks.poll(
                namespace, request.worker_id, workflow_types, max_tasks=request.max_tasks or 1, wait_ms=wait_ms
            ),
            wait_ms=_read_wait_ms(request),
            remaining_s=remaining_s,
        )
        if claimed:
            leased = [RunLease(run.run, run.lease) for run in claimed]
            self._connections.polled(PEER.get()(), request.worker_id, leased)
        return write_poll([write_task(run) for run in claimed])

    async def BeginStep(self, request: pb.BeginStepRequest) -> pb.BeginStepResponse:
        step_id = request.step_id or request.step_name
        if request.kind == pb.STEP_KIND_SLEEP:
            return await self._begin_sleep(request, step_id)
        _refuse_other_kinds(request)
        begin = operation_of(request, pb.BeginStepOperation, step_id=step_id, name=request.step_name)
        outcome = await self._submit(request, pb.Operation(begin_step=begin))
        if isinstance(outcome, Begun):
            return pb.BeginStepResponse(step_id=step_id, should_execute=True, attempt=outcome.attempt)
        known = require(outcome, Known)
        if not request.HasField("lease"):
            raise_unless_completed(known.step, self._clock.now())
        return _write_known(known)

    async def _begin_sleep(self, request: pb.BeginStepRequest, step_id: str) -> pb.BeginStepResponse:
        """Records nothing: says whether the sleep is over, or is to be begun with Sleep."""
        run, peer = read_run_key(request), PEER.get()()
        lease = self._lease_of(request, run, peer)
        await self._tasks.history(run, lease, limits.STEPS_PER_RUN * limits.STEPS_PER_RUN)  # refuses a lost lease
        try:
            step = await self._engine.steps.get(run.namespace, run.run_id, step_id)
        except NotFound:
            step = None
        is_over = step is not None and step.status is StepStatus.COMPLETED
        if not is_over:
            self._connections.pauses(peer, run)
        return pb.BeginStepResponse(step_id=step_id, should_execute=not is_over, attempt=1)

    async def CompleteStep(self, request: pb.CompleteStepRequest) -> pb.CompleteStepResponse:
        complete = operation_of(request, pb.CompleteStepOperation)
        recorded = require(await self._submit(request, pb.Operation(complete_step=complete)), Recorded)
        step = await self._engine.steps.get(request.namespace_id, request.run_id, request.step_id)
        return pb.CompleteStepResponse(step=write_step(step), seq=recorded.seq)

    async def FailStep(self, request: pb.FailStepRequest) -> pb.FailStepResponse:
        fail = operation_of(request, pb.FailStepOperation)
        outcome = await self._submit(request, pb.Operation(fail_step=fail))
        if isinstance(outcome, RetryScheduled):
            self._connections.retry_due(PEER.get()(), read_run_key(request), outcome.retry_at)
            return pb.FailStepResponse(
                scheduled_retry=True,
                retry_at=write_time(outcome.retry_at),
                next_attempt=outcome.next_attempt,
                seq=outcome.seq,
            )
        return pb.FailStepResponse(seq=require(outcome, StepFailed).seq)

    async def CompleteWorkflow(self, request: pb.CompleteWorkflowRequest) -> pb.CompleteWorkflowResponse:
        complete = operation_of(request, pb.CompleteRunOperation)
        closed = require(await self._submit(request, pb.Operation(complete_run=complete)), RunClosed)
        return pb.CompleteWorkflowResponse(status=RUN_STATUS_TO_WIRE[closed.status])

    async def FailWorkflow(self, request: pb.FailWorkflowRequest) -> pb.FailWorkflowResponse:
        fail = operation_of(request, pb.FailRunOperation)
        closed = require(await self._submit(request, pb.Operation(fail_run=fail)), RunClosed)
        return pb.FailWorkflowResponse(
            status=RUN_STATUS_TO_WIRE[closed.status], retry_at=write_time_if(closed.retry_at)
        )

    async def Sleep(self, request: pb.SleepRequest) -> pb.SleepResponse:
        response = await sleep(self._submit, request)
        if not (response.parked or request.HasField("lease")):
            run = read_run_key(request)
            if self._connections.leaves_after_sleep(PEER.get()(), run):
                await self._submit(request, pb.Operation(release=pb.ReleaseOperation(reason="its sleep is over")))
        return response

    async def Park(self, request: pb.ParkRequest) -> pb.ParkResponse:
        outcome = await self._submit(request, pb.Operation(park=operation_of(request, pb.ParkOperation)))
        if isinstance(outcome, Parked):
            return pb.ParkResponse(parked=True)
        page = require(outcome, NotParked)
        return pb.ParkResponse(results=[write_history_step(step) for step in page.results], more=page.more)

    async def Release(self, request: pb.ReleaseRequest) -> pb.ReleaseResponse:
        release = operation_of(request, pb.ReleaseOperation)
        closed = require(await self._submit(request, pb.Operation(release=release)), RunClosed)
        return pb.ReleaseResponse(status=RUN_STATUS_TO_WIRE[closed.status])

    async def WaitSignal(self, request: pb.WaitSignalRequest) -> pb.WaitSignalResponse:
        return await wait_signal(self._submit, request)

    async def StartChild(self, request: pb.StartChildRequest) -> pb.StartChildResponse:
        return await start_child(self._submit, request)

    async def _submit(self, request: RunRequest, operation: pb.Operation) -> Outcome:
        """Decodes and submits an operation as a session does. Raises the refusal."""
        run, peer = read_run_key(request), PEER.get()()
        lease = self._lease_of(request, run, peer)
        command = read_operation(operation, run, lease, self._clock.now())
        if isinstance(command, Refused):
            raise error_of(command.error)
        self._connections.retry_due(peer, run, None)
        try:
            outcome = await self._tasks.submit(command)
        except LeaseLost:
            self._connections.gave_up(peer, run)
            raise
        if isinstance(outcome, Parked | RunClosed):
            self._connections.gave_up(peer, run)
        return outcome

    def _lease_of(self, request: RunRequest, run: RunKey, peer: str) -> Lease:
        """Without one, that of the run that was polled on this connection."""
        lease = read_lease_of(request)
        if lease is None:
            return self._connections.lease_of(peer, run)
        self._connections.names_leases(peer, run=run)
        return lease

    # --- streams ------------------------------------------------------------------------------------------------------

    async def Session(self, context: Context) -> None:
        stream = SessionStream(
            self._engine.sessions,
            context,
            clock=self._clock,
            settings=self._settings,
            version=self._version,
            unread=self._unread,
            incomplete=self._incomplete,
        )
        try:
            await stream.serve()
        finally:
            stream.close()

    async def GetHistory(self, context: Context) -> None:
        request = read_message(await context.read(), pb.GetHistoryRequest)
        run, after = read_run_key(request), request.after
        lease = self._lease_of(request, run, context.peer())
        while True:
            async with self._answers.reserve(run.namespace) as reservation:
                page = await self._tasks.history(run, lease, after, request.known_seq)
                message = write_history_page(page) or pb.HistoryPage()
                reservation.use(message.ByteSize())
                await context.write(message.SerializeToString())
            if not page.has_more:
                return
            after = page.next_after


def _read_wait_ms(request: pb.PollTaskRequest) -> int:
    return read_duration_ms(request.wait) if request.HasField("wait") else limits.POLL_DEFAULT_WAIT_MS


def write_poll(tasks: list[pb.Task]) -> pb.PollTaskResponse:
    """Puts the first task also into the fields of the first contract."""
    if not tasks:
        return pb.PollTaskResponse()
    first = tasks[0]
    response = pb.PollTaskResponse(
        run_id=first.run_id, workflow_type=first.workflow_type, lease=first.lease, tasks=tasks
    )
    if first.HasField("input"):
        response.input.CopyFrom(first.input)
    return response


def _refuse_other_kinds(request: pb.BeginStepRequest) -> None:
    if request.kind in (pb.STEP_KIND_UNSPECIFIED, pb.STEP_KIND_FUNCTION):
        return
    kind = STEP_KIND_FROM_WIRE.get(request.kind)
    raise InvalidArgument(
        f"kind={kind or request.kind} is not begun by BeginStep, which begins steps of kind FUNCTION and SLEEP.",
        field="kind",
    )


def _write_known(known: Known) -> pb.BeginStepResponse:
    """The response for a step that has a result, or waits for its retry."""
    step = known.step
    return pb.BeginStepResponse(
        step_id=step.step_id,
        should_execute=False,
        cached_output=write_payload_if(step.output),
        attempt=step.attempt,
        error=None if step.error is None or step.retry_at is not None else write_error(step.error),
        retry_at=write_time_if(step.retry_at),
    )

"""ctx.child and ctx.start_child: runs that are steps of their parent run."""

import asyncio
from collections.abc import Mapping
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

from ...core.checks.attributes import checked_labels, checked_priority
from ...core.checks.refused_requests import error_of
from ...core.duration import Duration, parse_duration
from ...core.errors import ChildError, InvalidArgument
from ...core.public import exported
from ...core.records import NO_LABELS, Payload
from ...core.run.children import is_refused_start
from ...core.text.storable import is_storable
from ...core.times import us_from_timedelta
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ...v1.workflow_pb2 import StartWorkflowRequest
from ...wire.common import read_error
from ..execution import undecodable
from ..execution.calls.races import withdraw
from ..execution.calls.steps import place_in, scope_of
from ..execution.calls.waits import may_begin
from ..execution.interruption import in_cleanup
from ..execution.ledger import ABANDONED, CHILD
from ..execution.ports import Answer
from ..execution.run_execution import RunExecution
from .codec import read_payload
from .failures import STEP_ATTRIBUTE
from .workflow import Workflow

O_co = TypeVar("O_co", covariant=True)
OnClose = Literal["cancel", "abandon"]
OnConflict = Literal["fail", "attach"]


class ChildKeywords(TypedDict, total=False):
    """The options of a child, as keywords."""

    id: str | None  #: its workflow_id; default: a new one
    timeout: Duration | None  #: the child fails with kind TIMEOUT after this time; default: that of the workflow
    on_close: OnClose  #: if this run ends first: "cancel" (the default) cancels the child, "abandon" leaves it
    on_conflict: OnConflict
    """If a run with this `id` is open: "fail" (the default) raises AlreadyExists, "attach" waits for that run."""
    concurrency_key: str  #: per-key limits of the child's workflow count runs with the same key
    labels: Mapping[str, str] | None  #: up to 64, to find runs by; not inherited from this run
    priority: int  #: -100 to 100; higher runs first; default: 0, not inherited from this run
    version: int | str | None  #: the version of the child's workflow; default: the default version


class ChildOptions(NamedTuple):
    workflow: Workflow[Any, Any]
    input: Payload | None
    id: str = ""
    timeout_us: int | None = None
    on_close: OnClose = "cancel"
    attach: bool = False
    concurrency_key: str = ""
    labels: Mapping[str, str] = NO_LABELS
    priority: int = 0
    version: str = ""


@exported
class ChildHandle(Generic[O_co]):
    """A child that was started with `ctx.start_child`. It continues whether or not its result is awaited."""

    def __init__(
        self,
        run: RunExecution,
        step_id: str,
        run_id: str,
        workflow: Workflow[Any, O_co],
        end: Any,
        *,
        recorded: pb.HistoryStep | None,
    ) -> None:
        self.run_id = run_id  #: the run id of the child
        self._run = run
        self._step_id = step_id
        self._workflow = workflow
        self._end: asyncio.Future[pb.HistoryStep] = end
        self._abandoned = recorded if recorded is not None and recorded.status == ABANDONED else None

    async def result(self) -> O_co:
        """Wait for the child and return its result. Raises ChildError if it failed or was cancelled."""
        if self._abandoned is not None:
            await self._run.barrier.wait_in_vain(self._abandoned)
        if not self._end.done():
            self._run.tasks.idle.start()
            await self._wait_for_end()
        value: O_co = _value(self._run, self._end.result(), self._workflow)
        return value

    async def _wait_for_end(self) -> None:
        """Does not use asyncio.shield: its inner future must be settled by nothing else, but teardown settles it."""
        ended: asyncio.Future[None] = self._run.claim.loop.create_future()

        def wake(_: object) -> None:
            if not ended.done():
                ended.set_result(None)

        self._end.add_done_callback(wake)
        try:
            await self._run.wait(ended)
        finally:
            self._end.remove_done_callback(wake)

    def __repr__(self) -> str:
        return f"<ChildHandle {self._workflow.name!r} {self.run_id}>"


def child_options(run: RunExecution, workflow: Workflow[Any, Any], input: Any, keywords: ChildKeywords) -> ChildOptions:
    """The checked options of a child. Raises InvalidArgument."""
    if not isinstance(workflow, Workflow):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
        raise InvalidArgument(
            f"{workflow!r} is not a workflow. Decorate the function with @workflow.", field="workflow"
        )
    if unknown := keywords.keys() - ChildKeywords.__annotations__.keys():
        raise TypeError(f"a child takes no {', '.join(sorted(unknown))}")
    on_close, on_conflict = keywords.get("on_close", "cancel"), keywords.get("on_conflict", "fail")
    if on_close not in ("cancel", "abandon"):
        raise InvalidArgument(f'on_close={on_close!r} must be "cancel" or "abandon".', field="on_close")
    if on_conflict not in ("fail", "attach"):
        raise InvalidArgument(f'on_conflict={on_conflict!r} must be "fail" or "attach".', field="on_conflict")
    payload = None if input is ... else workflow.write_input(input)
    timeout = keywords.get("timeout")
    timeout_us = None if timeout is None else us_from_timedelta(parse_duration(timeout, what="timeout"))
    version = keywords.get("version")
    return ChildOptions(
        workflow,
        payload,
        _text(keywords.get("id") or "", "id"),
        timeout_us,
        on_close,
        attach=on_conflict == "attach",
        concurrency_key=_text(keywords.get("concurrency_key", ""), "concurrency_key"),
        labels=checked_labels(keywords.get("labels")),
        priority=checked_priority(keywords.get("priority", 0)),
        version="" if version is None else _text(str(version), "version"),
    )


def _text(value: object, field: str) -> str:
    """A text that can be sent. The server checks what is in it."""
    if not isinstance(value, str) or not is_storable(value):
        raise InvalidArgument(f"{field}={value!r} must be a string of valid Unicode without NUL.", field=field)
    return value


async def execute_child(run: RunExecution, step_id: str, options: ChildOptions) -> Any:
    """The result of the child. If the awaiting task is cancelled, the child is cancelled too."""
    step = run.take(step_id, CHILD)
    if step is not None and step.seq and run.delivery.reach_alone(step):
        return _value(run, step, options.workflow)
    try:
        return await (await _started(run, step_id, options, step)).result()
    except asyncio.CancelledError:
        if step_id in run.ledger.open:
            withdraw(run, step_id)
            run.waits.drop(step_id)
            run.ledger.open.pop(step_id, None)
        raise


async def execute_start_child(run: RunExecution, step_id: str, options: ChildOptions) -> ChildHandle[Any]:
    return await _started(run, step_id, options, run.take(step_id, CHILD))


async def _started(
    run: RunExecution, step_id: str, options: ChildOptions, step: pb.HistoryStep | None
) -> ChildHandle[Any]:
    end: asyncio.Future[pb.HistoryStep] | None
    if step is None:
        await may_begin(run, step_id)
        run.ledger.open[step_id] = scope_of(run)
        child_run_id, begun_seq = await _start(run, step_id, options)
        end = run.waits.child(step_id, begun_seq)
    else:
        run.ledger.open[step_id] = scope_of(run)
        child_run_id = step.child_run_id
        end = _recorded_end(run, step) if child_run_id or step.seq else None
        if len(run.tasks.all) > 1:
            seq = step.seq if step.seq and _is_refused(step) else step.begun_seq
            await run.delivery.turn(seq, step.at_us or run.delivery.now_us or 0)
        if end is None:
            # An earlier execution started the child, and a retry of the run discarded it. The new child takes its place
            # in the order: nothing is delivered before it has started.
            run.delivery.restarting.add(step_id)
            child_run_id, _ = await _start(run, step_id, options)
            end = run.waits.child(step_id, step.begun_seq)
    end.add_done_callback(lambda _: run.ledger.open.pop(step_id, None))
    if step is not None and step.seq and _is_refused(step):
        _value(run, step, options.workflow)
    return ChildHandle(run, step_id, child_run_id, options.workflow, end, recorded=step)


def _recorded_end(run: RunExecution, step: pb.HistoryStep) -> "asyncio.Future[pb.HistoryStep]":
    """The end of a child that is recorded as started: delivered in its recorded order, or when it arrives."""
    if not step.seq:
        return run.waits.child(step.step_id, step.begun_seq)
    future: asyncio.Future[pb.HistoryStep] = run.claim.loop.create_future()
    if step.status != ABANDONED:
        run.delivery.push(step.seq, step.at_us, future, step)
        future.add_done_callback(lambda _: run.delivery.reached())
    return future


async def _start(run: RunExecution, step_id: str, options: ChildOptions) -> tuple[str, int]:
    """Start the child. Returns its run id and the seq of its start. If this fails, the step is closed."""
    try:
        answer = await _send_start(run, step_id, options)
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError):
            withdraw(run, step_id)
        run.ledger.open.pop(step_id, None)
        raise
    return "" if answer.detail is None else answer.detail.child.child_run_id, answer.seq


async def _send_start(run: RunExecution, step_id: str, options: ChildOptions) -> Answer:
    child = pb.StartChildOperation(step_id=step_id)  # filled in before it is asked for: a wrong type raises here
    if run.services.on_child is not None:
        run.services.on_child(options.workflow)
    if options.workflow.name != step_id:
        child.name = options.workflow.name
    _fill_start(run, child.start, options)
    child.on_close = pb.PARENT_CLOSE_POLICY_ABANDON if options.on_close == "abandon" else pb.PARENT_CLOSE_POLICY_CANCEL
    child.attach = options.attach
    place_in(child, scope_of(run))
    operation, future = run.operations.ask(step_id)
    operation.start_child.CopyFrom(child)
    answer = await run.answer(future)
    if answer.detail is not None and answer.detail.WhichOneof("kind") == "exhausted":
        raise _error(step_id, answer.detail.exhausted.error)
    return answer


def _fill_start(run: RunExecution, start: StartWorkflowRequest, options: ChildOptions) -> None:
    workflow = options.workflow
    start.workflow_type = workflow.name
    start.workflow_id = options.id
    traced = None if run.stretch is None else run.stretch.child_context()
    if traced is not None:
        start.context.data = traced.data
    elif run.task.HasField("context"):
        start.context.CopyFrom(run.task.context)
    start.concurrency_key = options.concurrency_key
    if options.labels:
        start.labels.update(options.labels)
    start.priority = options.priority
    start.version = options.version
    if options.input is not None:
        start.input.data = options.input.data
        if options.input.metadata:
            start.input.metadata.update(options.input.metadata)
    timeout_us = options.timeout_us
    if timeout_us is None and workflow.timeout is not None:
        timeout_us = us_from_timedelta(workflow.timeout)
    if timeout_us is not None:
        start.timeout.FromMicroseconds(timeout_us)


def _is_refused(step: pb.HistoryStep) -> bool:
    """Whether the child was never started: the server refused it."""
    return step.status == pb.STEP_STATUS_FAILED and is_refused_start(read_error(step.error))


def _value(run: RunExecution, step: pb.HistoryStep, workflow: Workflow[Any, Any]) -> Any:
    if step.status != pb.STEP_STATUS_COMPLETED:
        error = _error(step.step_id, step.error)
        if run.cancelling and not run.ledger.replaying and not in_cleanup() and _is_cancelled(error):
            raise run.interruption.cancelled() from error  # cancelled together with this run: no error to handle
        raise error
    what = f"output of child {step.step_id!r}"
    if step.output.metadata:
        undecodable.pause_if_encoded(run, step.output, f"the {what}")
    return read_payload(workflow.output_codec, Payload(step.output.data or b"null"), what=what)


def _is_cancelled(error: Exception) -> bool:
    return isinstance(error, ChildError) and error.status == "cancelled"


def _error(step_id: str, recorded: common.ErrorDetail) -> Exception:
    detail = read_error(recorded)
    error: Exception
    if is_refused_start(detail):
        error = error_of(detail)
    else:
        error = ChildError.of_step(detail)
    setattr(error, STEP_ATTRIBUTE, step_id)
    return error

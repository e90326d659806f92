"""Replays recorded histories against local code: the SDK's own execution, without a server."""

import copy
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Literal, NamedTuple

import msgspec

from ...core.duration import Duration, parse_duration
from ...core.error_details import ErrorKind
from ...core.errors import InternalError, InvalidArgument, NotFound, PreconditionFailed
from ...core.records import ENCODING
from ...core.run.commands import StartChild
from ...core.run.misfits import misfit_of
from ...core.states import RunStatus
from ...core.times import Timestamp
from ...core.transfers.images import RunImage, StepImage, write_data
from ...core.workflow_types.versions import best_first
from ...sdk.execution.state import Suspended
from ...sdk.transport.payload_codec import CLEAR, Codec, MessageCodec, message_codec
from ...sdk.worker.registry import AnyWorkflow, Registry
from ...sdk.workflow.codec import ANY
from ...sdk.workflow.failures import describe
from ...sdk.workflow.workflow import Workflow, as_workflow
from .divergences import divergence_of
from .execution import ReplayExecutor
from .history import History
from .live import ChildEnd, LivePort
from .observation import Observation, definition_of
from .port import ReplayPort, Verdict
from .result import NewTimeout, Replay, ReplayedStep
from .tasks import may_have_been_cancelled, state_of, task_of, was_cancelled
from .watchdog import Watchdog

Stubs = Literal["recorded", "live"]

_STATUS_OF_OUTCOME = {"completed": RunStatus.COMPLETED, "failed": RunStatus.FAILED, "cancelled": RunStatus.CANCELLED}


class Replayer:
    """Replays recorded histories against local code: `await Replayer([order]).run(History.load("run.jsonl"))`.

    It needs no server: the code runs as in a worker, with recorded results, in recorded order, at recorded times.

    Args:
        workflows: The workflows, as for a worker.
        codec: The codec that values were encoded with, if any. Default: that of the history.
        outside_wait: How long the code may wait for something outside Kagzi, such as `asyncio.sleep`.

    Raises InvalidArgument if an item is not a workflow.
    """

    def __init__(
        self, workflows: Iterable[AnyWorkflow], *, codec: Codec | None = None, outside_wait: Duration = "10s"
    ) -> None:
        self._registry = Registry(map(_replayable, workflows))
        self._codec = message_codec(codec)
        self._outside_wait_s = parse_duration(outside_wait, what="outside_wait").total_seconds()

    async def run(self, history: History, *, stubs: Stubs = "recorded", until: str | None = None) -> Replay:
        """Replay the history against the code, and return the result.

        Args:
            history: The history of a run.
            stubs: What steps do. `"recorded"`: each returns its recorded result, and no body runs. `"live"`: steps
                beyond the history run in this process; sleeps and backoffs end at once.
            until: The id of a step. With recorded stubs the replay stops there; with live ones the history ends there.

        It also returns if the code waits forever, and leaves nothing running. Raises NotFound if the workflow of the
        run is not among `workflows`, PreconditionFailed for values that cannot be decoded, InvalidArgument if `until`
        is not one of its steps.
        """
        if stubs not in ("recorded", "live"):
            raise InvalidArgument(f'stubs={stubs!r} must be "recorded" or "live".', field="stubs")
        codec = self._codec or history.codec
        history = history.decoded_by(codec)
        script = _Script(
            history, self._workflow_of(history), codec, stubs, until or "", _step_of(history, stubs, until)
        )
        replay = await self._play(script, cancelled=was_cancelled(history))
        if replay.outcome in ("open", "diverged") and may_have_been_cancelled(history):
            again = await self._play(script, cancelled=True)
            replay = replay if again.outcome == "diverged" else again
        if until and stubs == "recorded" and replay.outcome in (*_STATUS_OF_OUTCOME, "continued"):
            raise InvalidArgument(
                f"until={until!r}: the code came to its end ({replay.outcome}) without such a step. "
                f"It made: {_few([step.id for step in replay.steps])}.",
                field="until",
            )
        return replay

    def observe(self) -> Observation:
        """The object that records the calls of the next replay. Subclasses override it to record more."""
        return Observation()

    def _workflow_of(self, history: History) -> Workflow[Any, Any]:
        workflow = self._registry.find(history.workflow_type, history.version)
        if workflow is None:
            served = ", ".join(f"{each.workflow_type!r} version {each.version}" for each in self._registry.served)
            raise NotFound(
                f"run {history.run_id} is of workflow {history.workflow_type!r} version {history.version}, which is "
                f"not here. Give it to the Replayer, which has {served or 'none'}.",
                subject="workflow",
                subject_id=history.workflow_type,
            )
        return workflow

    async def _play(self, script: "_Script", *, cancelled: bool) -> Replay:
        port = self._port(script, cancelled=cancelled)
        await play(self._registry, port, outside_wait_s=self._outside_wait_s)
        if port.verdict is None:
            raise InternalError(f"the replay of {script.history!r} ended without a result: {port.release_reason}")
        return _replay(script.history, script.workflow, port, port.verdict)

    def _port(self, script: "_Script", *, cancelled: bool) -> ReplayPort:
        history, codec, before = script.history, script.codec, script.live_from
        task = task_of(history, codec, cancelled=cancelled, before=before)
        if script.stubs == "live":
            return LivePort(task, Observation(), state_of(history, task, codec, before=before), self._run_child)
        port = ReplayPort(task, self.observe(), script.until)
        port.waits_outside = history.status.ended
        return port

    async def _run_child(self, command: StartChild, now: Timestamp) -> ChildEnd | None:
        """Execute the child live, if its workflow is known."""
        start = command.start
        workflow = self._latest(start.workflow_type, start.version)
        if workflow is None:
            return None
        image = RunImage(
            run_id=start.run.run_id,
            request_id=start.request_id,
            workflow_id=start.workflow_id,
            workflow_type=start.workflow_type,
            version=workflow.version,
            status=RunStatus.RUNNING,
            created_at=now,
            last_seq=0,
            labels=start.labels,
            parent_run_id=command.run.run_id,
            input=write_data(start.input),
            context=write_data(start.context),
        )
        while True:
            history = History(image, (), namespace=start.run.namespace)
            port = self._port(_Script(history, workflow, None, "live", "", None), cancelled=False)
            await play(self._registry, port, outside_wait_s=self._outside_wait_s)
            verdict, at = port.verdict, port.now_us()
            if verdict is not None and verdict.outcome == "continued":
                image = msgspec.structs.replace(image, input=write_data(verdict.payload), created_at=at)
                continue
            status = None if verdict is None else _STATUS_OF_OUTCOME.get(verdict.outcome)
            return None if verdict is None or status is None else ChildEnd(status, verdict.payload, verdict.error, at)

    def _latest(self, workflow_type: str, version: str | None) -> Workflow[Any, Any] | None:
        if version is not None:
            return self._registry.find(workflow_type, version)
        versions = [each.version for each in self._registry.served if each.workflow_type == workflow_type]
        return self._registry.find(workflow_type, best_first(versions)[0]) if versions else None


class _Script(NamedTuple):
    """What to replay. `live_from`: the history ends before this step."""

    history: History
    workflow: Workflow[Any, Any]
    codec: MessageCodec | None
    stubs: Stubs
    until: str
    live_from: StepImage | None


def _step_of(history: History, stubs: Stubs, until: str | None) -> StepImage | None:
    """The step at which a live replay leaves the history; None for its end. Raises InvalidArgument."""
    if stubs == "recorded" or not until:
        return None
    step = next((each for each in history.step_images if each.step_id == until), None)
    if step is None:
        names = _few([each.step_id for each in history.step_images])
        raise InvalidArgument(f"until={until!r} is not a step of this history. It has: {names}.", field="until")
    return step


async def play(registry: Registry, port: ReplayPort, *, outside_wait_s: float) -> None:
    """Execute the port's task until the port is closed. Nothing is left running."""
    executor = ReplayExecutor(registry)
    executor.accept(port.task, port)
    watchdog = Watchdog(port, outside_wait_s)
    try:
        await port.closed
    finally:
        watchdog.stop()
        executor.release_all("the replay is over")
        await executor.drained()
        await port.end_children()
        executor.close()


def _replayable(any_workflow: AnyWorkflow) -> Workflow[Any, Any]:
    """A copy of the workflow, so that what runs learn about it does not change the original."""
    workflow = copy.copy(as_workflow(any_workflow))
    workflow.runs_ahead = False  # the response is always available
    return workflow


def _replay(history: History, workflow: Workflow[Any, Any], port: ReplayPort, verdict: Verdict) -> Replay:
    error, divergence, observation = verdict.error, None, port.observation
    if verdict.outcome == "diverged" and error is not None:
        if error.kind is not ErrorKind.NONDETERMINISM and misfit_of(error) is None:
            raise _undecodable(error.message, error.metadata.get(ENCODING) == CLEAR)
        recorded: dict[str, StepImage] = {step.step_id: step for step in history.step_images}
        divergence = divergence_of(error, observation, recorded, definition_of(workflow.fn))
        left_with = port.left_with
        error = None if left_with is None or isinstance(left_with, Suspended) else describe(left_with)
    output = None
    if verdict.payload is not None:
        codec = workflow.output_codec if verdict.outcome == "completed" else ANY
        output = codec.decode(verdict.payload.data or b"null", what="the output")
    return Replay(
        outcome=verdict.outcome,
        output=output,
        error=error,
        steps=_steps(history, observation),
        divergence=divergence,
        waits_for=verdict.waits_for,
        new_timeouts=_new_timeouts(observation),
        executed=tuple(port.executed),
        now_values=tuple(observation.now_values),
        uuid_values=tuple(observation.uuid_values),
        random_values=tuple(observation.random_values),
        as_recorded=_as_recorded(history, verdict),
    )


def _steps(history: History, observation: Observation) -> tuple[ReplayedStep, ...]:
    recorded = {step.id: step for step in history.steps}
    steps: list[ReplayedStep] = []
    for step_id in observation.taken:
        place = observation.place_of(step_id)
        file, line = ("", 0) if place is None else place
        steps.append(ReplayedStep(**vars(recorded[step_id]), file=file, line=line))
    return tuple(steps)


def _new_timeouts(observation: Observation) -> tuple[NewTimeout, ...]:
    changes: list[NewTimeout] = []
    for step_id, (before_us, after_us) in observation.timeouts.items():
        file, line = observation.place_of(step_id) or ("", 0)
        changes.append(
            NewTimeout(step=step_id, before=_duration(before_us), after=_duration(after_us), file=file, line=line)
        )
    return tuple(changes)


def _duration(us: int | None) -> timedelta | None:
    return None if us is None else timedelta(microseconds=us)


def _as_recorded(history: History, verdict: Verdict) -> bool | None:
    error = history.error
    from_outside = error is not None and error.kind in (ErrorKind.TERMINATED, ErrorKind.TIMEOUT)
    if not history.status.ended or verdict.outcome == "until" or (verdict.outcome == "open" and from_outside):
        return None
    if verdict.outcome == "continued" or history.continued_as is not None:
        return verdict.outcome == "continued" and history.continued_as is not None
    if _STATUS_OF_OUTCOME.get(verdict.outcome) is not history.status:
        return False
    if verdict.outcome == "completed":
        data = b"" if verdict.payload is None else verdict.payload.data
        return bool(ANY.decode(data or b"null", what="the output") == history.output)
    return verdict.outcome == "cancelled" or (
        verdict.error is not None and verdict.error.text == (error or verdict.error).text
    )


def _undecodable(message: str, own: bool) -> Exception:
    if not own:
        return InternalError(f"the replay was stopped: {message}")
    return PreconditionFailed(f"{message.partition(' Then resume the run')[0]} Here: Replayer(..., codec=...).")


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "none"

"""Records the arguments with which a workflow calls its steps while it is replayed."""

import asyncio
import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, NamedTuple

from ...core.errors import PreconditionFailed
from ...sdk.execution.calls.steps import execute_step
from ...sdk.execution.calls.waits import execute_wait_for
from ...sdk.worker.registry import AnyWorkflow
from ...sdk.workflow.children import ChildOptions, execute_child, execute_start_child
from ...sdk.workflow.codec import ANY, Codec, to_plain
from ...sdk.workflow.signals import Signal
from ...sdk.workflow.signatures import facts_of
from ...v1 import worker_pb2 as pb
from ..replay.history import History
from ..replay.observation import Observation
from ..replay.replayer import Replayer
from ..replay.result import Replay

_CHILDREN = (execute_child.__code__, execute_start_child.__code__)


class Seen(NamedTuple):
    """A call of the code: its arguments, and how its result is decoded. `args` and `kwargs` are those of a step."""

    codec: Codec[Any]
    args: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None


class SeenCalls(Observation):
    """Records the calls that are in the history, by step id. It reads the frame of the function that executes a call,
    so ordinary replays pay nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, Seen] = {}

    def took(self, step: pb.HistoryStep) -> None:
        super().took(step)
        self.calls[step.step_id] = _seen(sys._getframe(2))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _seen(frame: FrameType) -> Seen:
    here = frame.f_locals
    if frame.f_code is execute_step.__code__:
        return Seen(here["options"].codec or facts_of(here["fn"]).codec, here["args"], here["kwargs"])
    if frame.f_code in _CHILDREN:
        options: ChildOptions = here["options"]
        return Seen(options.workflow.output_codec)
    if frame.f_code is execute_wait_for.__code__:
        signal: Signal[Any] = here["signal"]
        return Seen(signal.codec)
    return Seen(ANY)


class SeeingReplayer(Replayer):
    """A replayer that records the arguments with which the code calls its steps."""

    def __init__(self, workflows: Iterable[AnyWorkflow]) -> None:
        super().__init__(workflows)
        self.seen = SeenCalls()

    def observe(self) -> Observation:
        self.seen = SeenCalls()
        return self.seen


def replay_seeing(history: History, workflows: Iterable[AnyWorkflow]) -> tuple[Replay, Mapping[str, Seen]]:
    """The replay, and the recorded calls that the code made in it, by step id."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise PreconditionFailed(
            "replay() runs an event loop of its own, and one is running here. Call it from a plain `def test_...`, or "
            "write: await Replayer([workflow]).run(run.history())"
        )
    replayer = SeeingReplayer(workflows)
    replay = asyncio.run(replayer.run(history))
    return replay, replayer.seen.calls


def plain(value: Any) -> Any:
    """Convert a value to JSON: dicts, lists, strings and numbers. Raises TypeError if it has no JSON form."""
    return to_plain(value)

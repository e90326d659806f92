"""Records of runs: what `run.info()`, `run.explain()` and `client.count()` return."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ...core.error_details import ErrorDetail
from ...core.public import exported
from ...core.records import ENCODING, Explanation, is_encoded
from ...core.states import RunStatus, WaitReason
from ...v1 import workflow_pb2 as pb
from ...v1.common_pb2 import Payload
from ...wire.fields import reader


@exported
@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as it was when asked: `await run.info()`. Times are in UTC."""

    id: str  #: the run id
    workflow_id: str  #: the id it was started with, or a generated one
    workflow: str  #: the name of its workflow
    version: str | None  #: the version it is pinned to; None until a worker takes it
    status: RunStatus  #: its state
    wait_reason: WaitReason | None  #: what a sleeping run waits for
    status_text: str  #: what the workflow last said with `ctx.set_status`
    progress: float | None  #: 0 to 1, as the workflow last said
    labels: Mapping[str, str]  #: its labels
    attempt: int  #: of the whole run: 1, or more if the run itself was retried
    created_at: datetime  #: when it was started by a client
    started_at: datetime | None  #: when a worker first took it
    finished_at: datetime | None  #: when it ended
    wake_at: datetime | None  #: when a sleeping run wakes by itself
    deadline_at: datetime | None  #: when it fails, wherever it is
    waits: tuple[str, ...]  #: ids of the steps that a sleeping run waits for, nearest first; not in lists
    cancel_requested: bool  #: whether it was asked to stop
    pause_requested: bool  #: whether it will pause when its worker lets go
    error: ErrorDetail | None  #: why it failed
    problem: ErrorDetail | None  #: why the engine paused it
    parent: str | None  #: run id of its parent
    forked_from: str | None  #: run id of the run it was forked from
    continued_as: str | None  #: run id of the run that continues it
    schedule: str | None  #: id of the schedule that started it
    concurrency_key: str  #: the key that limits per key count it by
    pause_reason: str  #: what was said when it was paused
    blocked_by: str | None  #: run id of the run that has to end before it begins
    scheduled_at: datetime | None  #: the nominal time, if a schedule started it; not in lists
    namespace: str = ""  #: where it is
    priority: int = 0  #: higher ones are taken first
    worker_id: str | None = None  #: the worker that holds it
    parent_step: str | None = None  #: the step of its parent that started it
    awaits_signal: int = 0  #: how many of its steps wait for a signal
    retrying_steps: int = 0  #: how many of its steps have failed and are retried
    claims: int = 0  #: how often a worker has taken it
    own_traces_from: int = 0  #: from which of these on each has a trace of its own; 0 if none has
    pinned_build: str | None = None  #: the build id of the workers that alone may take it; see `versions.adopt`
    url: str = ""  #: its page; empty if the server has no pages
    input: bytes = b""  #: what it was given, as JSON; empty in lists, and if it was given nothing
    output: bytes = b""  #: what it returned, as JSON; empty in lists, and while there is none
    context: bytes = b""  #: what `start(context=...)` gave, as JSON; empty in lists, and without one
    state: bytes = b""  #: what the workflow last set with `ctx.set_state`, as JSON; empty in lists, and without one
    state_at: datetime | None = None  #: when it did; not in lists
    encoding: str = ""  #: how input, output and state are encoded, if it is not plain JSON


class RunCount(int):
    """How many runs there are: an int. A server stops counting at 10,000; then `capped` is True."""

    capped: bool  #: whether there are more

    def __new__(cls, count: int, capped: bool) -> "RunCount":
        made = super().__new__(cls, count)
        made.capped = capped
        return made


read_run_info = reader(
    pb.Workflow,
    RunInfo,
    names={
        "id": "run_id",
        "workflow": "workflow_type",
        "attempt": "attempts",
        "wake_at": "wake_up_at",
        "parent": "parent_run_id",
        "parent_step": "parent_step_id",
        "schedule": "schedule_id",
    },
    unread=("task_queue", "cancel_reason", "last_seq", "retry_policy"),
    input=lambda message: message.input.data,
    output=lambda message: message.output.data,
    context=lambda message: message.context.data,
    state=lambda message: message.state.data,
    encoding=lambda message: (
        payload_encoding(message.input) or payload_encoding(message.output) or payload_encoding(message.state)
    ),
)

read_explanation = reader(pb.ExplainWorkflowResponse, Explanation)


def payload_encoding(payload: Payload) -> str:
    return payload.metadata[ENCODING] if is_encoded(payload.metadata) else ""

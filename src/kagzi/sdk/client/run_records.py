"""Records of runs: what `run.info()`, `run.explain()` and `client.count()` return."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

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
    """A run at the time of the call: `await run.info()`. Times are in UTC."""

    id: str  #: the run id
    workflow_id: str  #: the id it was started with, or a generated one
    workflow: str  #: the name of its workflow
    version: str | None  #: the version it is pinned to; None until a worker takes it
    status: RunStatus  #: its status
    wait_reason: WaitReason | None  #: what a sleeping run waits for
    status_text: str  #: the text that the workflow last set with `ctx.set_status`
    progress: float | None  #: 0 to 1, as the workflow last set it
    labels: Mapping[str, str]  #: its labels
    attempt: int  #: of the whole run: 1, or more if the run itself was retried
    created_at: datetime  #: when it was created
    started_at: datetime | None  #: when a worker first took it
    finished_at: datetime | None  #: when it ended
    wake_at: datetime | None  #: when a timer wakes a sleeping run
    deadline_at: datetime | None  #: when it fails unless it has ended
    waits: tuple[str, ...]  #: ids of the steps that a sleeping run waits for, nearest first; not in lists
    cancel_requested: bool  #: whether it was asked to stop
    pause_requested: bool  #: whether it will pause when its worker releases it
    error: ErrorDetail | None  #: why it failed
    problem: ErrorDetail | None  #: why Kagzi paused it
    parent: str | None  #: run id of its parent
    forked_from: str | None  #: run id of the run it was forked from
    continued_as: str | None  #: run id of the run that continues it
    schedule: str | None  #: id of the schedule that started it
    concurrency_key: str  #: its key for per-key limits
    pause_reason: str  #: the reason given when it was paused
    blocked_by: str | None  #: run id of the run that has to end before it begins
    scheduled_at: datetime | None  #: the nominal time, if a schedule started it; not in lists
    namespace: str = ""  #: its namespace
    priority: int = 0  #: higher runs first
    worker_id: str | None = None  #: the worker that holds it
    parent_step: str | None = None  #: the step of its parent that started it
    awaits_signal: int = 0  #: how many of its steps wait for a signal
    retrying_steps: int = 0  #: how many of its steps are being retried
    unread_signals: int = 0  #: how many signals it has accepted that its code has not received
    handed_on_to: str | None = None  #: run id of the run that got the signals that it ended without having received
    claims: int = 0  #: how often a worker has taken it
    own_traces_from: int = 0  #: the first claim from which each has its own trace; 0 if none has
    ready_at: datetime | None = None  #: since when it has been waiting for a worker, while it is PENDING
    queued_at: datetime | None = None  #: when it began to wait for its first worker; None if it did not wait
    queued: timedelta = timedelta()  #: how long it has waited for workers in all, without the wait under way
    pinned_build: str | None = None  #: only workers with this build id may take it; see `versions.adopt`
    url: str = ""  #: the URL of its page; empty if the server has no pages
    input: bytes = b""  #: its input as JSON; empty in lists, and if it has none
    output: bytes = b""  #: its output as JSON; empty in lists, and while there is none
    context: bytes = b""  #: the value of `start(context=...)` as JSON; empty in lists, and if there is none
    state: bytes = b""  #: the value last set with `ctx.set_state`, as JSON; empty in lists, and if there is none
    state_at: datetime | None = None  #: when the state was set; not in lists
    encoding: str = ""  #: how input, output and state are encoded, if not as plain JSON


class RunCount(int):
    """A number of runs, as an int. A server stops counting at 10,000; then `capped` is True."""

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

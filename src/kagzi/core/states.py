"""The states of runs and steps, and which status of a run may follow which."""

from enum import IntEnum, StrEnum
from typing import Literal

from .public import exported


@exported
class RunStatus(StrEnum):
    """The state of a run."""

    PENDING = "pending"  #: ready to run: waits for a worker with a free slot
    RUNNING = "running"  #: a worker executes it
    SLEEPING = "sleeping"  #: waits for time, a signal, a child or a retry; needs no worker
    PAUSED = "paused"  #: by a person, or by the engine because of a problem
    COMPLETED = "completed"  #: the function returned
    FAILED = "failed"  #: the function raised, or the deadline passed
    CANCELLED = "cancelled"  #: cancelled or terminated

    @property
    def ended(self) -> bool:
        """Whether the run has ended: COMPLETED, FAILED or CANCELLED."""
        return self in ENDED


@exported
class WaitReason(StrEnum):
    """What a SLEEPING run waits for."""

    TIME = "time"  #: a sleep, or a delayed start
    SIGNAL = "signal"  #: a signal
    CHILD = "child"  #: the end of a child
    RETRY = "retry"  #: the next attempt of a step


@exported
class StepStatus(StrEnum):
    """The state of a step."""

    PENDING = "pending"  #: waits for its next attempt
    RUNNING = "running"  #: begun, without a result
    COMPLETED = "completed"  #: has a result
    FAILED = "failed"  #: failed for good
    ABANDONED = "abandoned"  #: lost a race, or was given up with its branch


@exported
class StepKind(StrEnum):
    """What a step is."""

    FUNCTION = "function"  #: `ctx.step`, `@step` or an item of `ctx.map`
    SLEEP = "sleep"  #: `ctx.sleep` and `ctx.sleep_until`
    SIGNAL = "signal"  #: `ctx.wait_for`
    CHILD = "child"  #: `ctx.child` and `ctx.start_child`
    RACE = "race"  #: `ctx.race`: who won
    PATCH = "patch"  #: `ctx.changed`


@exported
class WorkerStatus(StrEnum):
    """The state of a worker."""

    ONLINE = "online"  #: takes work
    DRAINING = "draining"  #: finishes what it has and takes no more
    OFFLINE = "offline"  #: left, or not heard of


ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})
OPEN = frozenset(RunStatus) - ENDED


class RunCode(IntEnum):
    """The codes of a RunStatus in the stores and on the wire. Exactly the ended states are in 4..6."""

    PENDING = 1
    RUNNING = 2
    SLEEPING = 3
    COMPLETED = 4
    FAILED = 5
    CANCELLED = 6
    PAUSED = 7


class WaitCode(IntEnum):
    TIME = 1
    SIGNAL = 2
    CHILD = 3
    RETRY = 4


class StepCode(IntEnum):
    PENDING = 1
    RUNNING = 2
    COMPLETED = 3
    FAILED = 4
    ABANDONED = 5


class KindCode(IntEnum):
    """Kinds from 100 on are not steps but other rows of a run: its input, context, output and state."""

    FUNCTION = 1
    SLEEP = 2
    SIGNAL = 3
    CHILD = 4
    RACE = 5
    PATCH = 6
    INPUT = 100
    FIRST_PAYLOAD = 100  #: lower kinds are steps
    CONTEXT = 101
    OUTPUT = 102
    STATE = 103  #: what the workflow shows of itself; no replay sees it


class WorkerCode(IntEnum):
    ONLINE = 1
    DRAINING = 2
    OFFLINE = 3


class OnCloseCode(IntEnum):
    """What happens to a child when its parent ends."""

    CANCEL = 1
    ABANDON = 2


RUN_STATUS_OF_CODE = {int(RunCode[status.name]): status for status in RunStatus}
CODE_OF_RUN_STATUS = {status: code for code, status in RUN_STATUS_OF_CODE.items()}
WAIT_REASON_OF_CODE = {int(WaitCode[reason.name]): reason for reason in WaitReason}
CODE_OF_WAIT_REASON = {reason: code for code, reason in WAIT_REASON_OF_CODE.items()}
STEP_STATUS_OF_CODE = {int(StepCode[status.name]): status for status in StepStatus}
CODE_OF_STEP_STATUS = {status: code for code, status in STEP_STATUS_OF_CODE.items()}
STEP_KIND_OF_CODE = {int(KindCode[kind.name]): kind for kind in StepKind}
CODE_OF_STEP_KIND = {kind: code for code, kind in STEP_KIND_OF_CODE.items()}
WORKER_STATUS_OF_CODE = {int(WorkerCode[status.name]): status for status in WorkerStatus}
ON_CLOSE_OF_CODE: dict[int, Literal["cancel", "abandon"]] = {
    OnCloseCode.CANCEL: "cancel",
    OnCloseCode.ABANDON: "abandon",
}
CODE_OF_ON_CLOSE = {on_close: code for code, on_close in ON_CLOSE_OF_CODE.items()}


# --- transitions ------------------------------------------------------------------------------------------------------
#
# Which status of a run may follow which.
#
# PENDING --claim--> RUNNING --park--> SLEEPING --timer, signal, child--> PENDING
#    |                  |  \--release, lease lost--> PENDING                 |
#    |                  |--end--> COMPLETED | FAILED | CANCELLED             |
#    \--cancel before the first claim, terminate, deadline--> CANCELLED | FAILED
# any of them --pause--> PAUSED --resume--> PENDING | SLEEPING
# FAILED --explicit retry--> PENDING (the only way back; the first failure stays in the history)

_END = {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}
_STOP = {RunStatus.FAILED, RunStatus.CANCELLED}  # deadline, terminate, cancel: without a worker

TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.PENDING: frozenset({RunStatus.RUNNING, RunStatus.PAUSED} | _STOP),
    RunStatus.RUNNING: frozenset({RunStatus.PENDING, RunStatus.SLEEPING, RunStatus.PAUSED} | _END),
    RunStatus.SLEEPING: frozenset({RunStatus.PENDING, RunStatus.PAUSED} | _STOP),
    RunStatus.PAUSED: frozenset({RunStatus.PENDING, RunStatus.SLEEPING} | _STOP),
    RunStatus.COMPLETED: frozenset(),
    RunStatus.FAILED: frozenset({RunStatus.PENDING}),  # only by an explicit Retry
    RunStatus.CANCELLED: frozenset(),
}

_CODES = frozenset(
    (CODE_OF_RUN_STATUS[now], CODE_OF_RUN_STATUS[then]) for now, following in TRANSITIONS.items() for then in following
)


def require_transition(now: int, then: int) -> None:
    """Raises AssertionError for a forbidden transition from status code `now` to `then`: a bug in a rule or a store."""
    if (now, then) not in _CODES:
        raise AssertionError(f"a run may not go from status {now} to {then}")

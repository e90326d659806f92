"""The states of runs and steps, and the one table of what may follow what.

PENDING --claim--> RUNNING --park--> SLEEPING --timer, signal, child--> PENDING
   |                  |  \\--release, lease lost--> PENDING                 |
   |                  |--end--> COMPLETED | FAILED | CANCELLED             |
   \\--cancel before the first claim, terminate, deadline--> CANCELLED | FAILED
any of them --pause--> PAUSED --resume--> PENDING | SLEEPING
FAILED --explicit retry--> PENDING (the one way back; the first failure stays in the history)
"""

from enum import IntEnum, StrEnum


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SLEEPING = "sleeping"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in ENDED


class WaitReason(StrEnum):
    TIME = "time"
    SIGNAL = "signal"
    CHILD = "child"
    RETRY = "retry"


class StepStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"


class StepKind(StrEnum):
    FUNCTION = "function"
    SLEEP = "sleep"
    SIGNAL = "signal"
    CHILD = "child"
    RACE = "race"
    PATCH = "patch"


class WorkerStatus(StrEnum):
    ONLINE = "online"
    DRAINING = "draining"
    OFFLINE = "offline"


ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})
OPEN = frozenset(RunStatus) - ENDED

_END = {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}
_STOP = {RunStatus.FAILED, RunStatus.CANCELLED}  # deadline, terminate, cancel: needs no worker

TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.PENDING: frozenset({RunStatus.RUNNING, RunStatus.PAUSED} | _STOP),
    RunStatus.RUNNING: frozenset({RunStatus.PENDING, RunStatus.SLEEPING, RunStatus.PAUSED} | _END),
    RunStatus.SLEEPING: frozenset({RunStatus.PENDING, RunStatus.PAUSED} | _STOP),
    RunStatus.PAUSED: frozenset({RunStatus.PENDING, RunStatus.SLEEPING} | _STOP),
    RunStatus.COMPLETED: frozenset(),
    RunStatus.FAILED: frozenset({RunStatus.PENDING}),  # only by an explicit Retry
    RunStatus.CANCELLED: frozenset(),
}


def may_become(now: RunStatus, then: RunStatus) -> bool:
    return then in TRANSITIONS[now]


class RunCode(IntEnum):
    """How the stores and the wire write a RunStatus. Ended states and only they lie in 4..6."""

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
    """Kinds 100 and above are rows of the history that are not steps: a run's input, context and output."""

    FUNCTION = 1
    SLEEP = 2
    SIGNAL = 3
    CHILD = 4
    RACE = 5
    PATCH = 6
    INPUT = 100
    CONTEXT = 101
    OUTPUT = 102


RUN_STATUS_OF_CODE = {int(RunCode[status.name]): status for status in RunStatus}
CODE_OF_RUN_STATUS = {status: code for code, status in RUN_STATUS_OF_CODE.items()}
WAIT_REASON_OF_CODE = {int(WaitCode[reason.name]): reason for reason in WaitReason}
CODE_OF_WAIT_REASON = {reason: code for code, reason in WAIT_REASON_OF_CODE.items()}
STEP_STATUS_OF_CODE = {int(StepCode[status.name]): status for status in StepStatus}
CODE_OF_STEP_STATUS = {status: code for code, status in STEP_STATUS_OF_CODE.items()}
STEP_KIND_OF_CODE = {int(KindCode[kind.name]): kind for kind in StepKind}
CODE_OF_STEP_KIND = {kind: code for code, kind in STEP_KIND_OF_CODE.items()}

"""Which status of a run may follow which.

PENDING --claim--> RUNNING --park--> SLEEPING --timer, signal, child--> PENDING
   |                  |  \\--release, lease lost--> PENDING                 |
   |                  |--end--> COMPLETED | FAILED | CANCELLED             |
   \\--cancel before the first claim, terminate, deadline--> CANCELLED | FAILED
any of them --pause--> PAUSED --resume--> PENDING | SLEEPING
FAILED --explicit retry--> PENDING (the one way back; the first failure stays in the history)
"""

from ..states import CODE_OF_RUN_STATUS, RunStatus

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

_CODES = frozenset(
    (CODE_OF_RUN_STATUS[now], CODE_OF_RUN_STATUS[then]) for now, following in TRANSITIONS.items() for then in following
)


def require_transition(now: int, then: int) -> None:
    """Raises AssertionError if a run with status code `now` may not get `then`: a rule, or a store, is wrong."""
    if (now, then) not in _CODES:
        raise AssertionError(f"a run may not go from status {now} to {then}")

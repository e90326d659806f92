"""The life of a run on its worker as a state machine. (Its life on the server is `kagzi.core.states`.)"""

from enum import Enum, auto


class RunState(Enum):
    RUNNING = auto()
    PARKING = auto()  # the server was asked; it may answer that the run continues
    PARKED = auto()  # no longer leased here; the coroutine is cached in case the run returns
    TEARDOWN = auto()  # its tasks are being ended; ctx calls raise Suspended
    ENDING = auto()  # its end is being sent to the server
    ENDED = auto()  # nothing more is sent about it


RUNNING = RunState.RUNNING
"""Used for every step: members of an Enum take longer to look up."""
LIVE = frozenset({RunState.RUNNING, RunState.PARKING})

TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.RUNNING: frozenset({RunState.PARKING, RunState.TEARDOWN, RunState.ENDING}),
    RunState.PARKING: frozenset({RunState.RUNNING, RunState.PARKED, RunState.TEARDOWN}),
    RunState.PARKED: frozenset({RunState.RUNNING, RunState.TEARDOWN}),
    RunState.TEARDOWN: frozenset({RunState.ENDING, RunState.ENDED}),
    # An end that the server refuses is replaced by a failure.
    RunState.ENDING: frozenset({RunState.ENDING, RunState.ENDED}),
    RunState.ENDED: frozenset(),
}


class Suspended(BaseException):
    """Ends workflow code whose run continues elsewhere or later. Not an Exception: `except Exception` must not see it.

    Cleanup code that runs meanwhile cannot record anything: ctx calls raise this again.
    """

"""Where a run is on its worker. (Where it is for the world is `kagzi.core.states`.)"""

from enum import Enum, auto


class State(Enum):
    RUNNING = auto()
    PARKING = auto()  # the server is asked; it may say that the run goes on
    PARKED = auto()  # not this worker's any more; the coroutine waits in case the run comes back
    UNWINDING = auto()  # its tasks are being ended; ctx calls raise Suspended
    ENDED = auto()

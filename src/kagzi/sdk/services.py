"""What every run of a worker shares."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .codec import PayloadHook
from .retry import Retry
from .threads import StepThreads

if TYPE_CHECKING:
    from .runner import Run


class Services(NamedTuple):
    """Of one executor."""

    threads: StepThreads
    retry: Retry | None
    hook: PayloadHook | None
    resident_wait_s: float
    fail: "Callable[[Run, BaseException], None]"
    closed: "Callable[[Run], None]"
    parked: "Callable[[Run, float | None], None]"  # with the seconds until it wakes, if that is known
    build_id: str = ""

"""What every run of a worker shares."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..execution.calls.threads import StepThreads
from ..workflow.codec import PayloadHook
from ..workflow.retry import Retry

if TYPE_CHECKING:
    from ..execution.run_execution import Run


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

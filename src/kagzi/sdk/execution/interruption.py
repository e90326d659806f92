"""Cancellation and pause of a run, requested from outside, and the scope in which a cancelled run may clean up."""

import asyncio
from dataclasses import dataclass, field
from types import TracebackType

from ..workflow.current import place
from .claim import Claim
from .idle.tasks import RunTasks
from .ledger import Ledger
from .ports import RunControl
from .scopes import Scope
from .state import RunState


@dataclass(slots=True, eq=False)
class Interruption:
    _run: RunControl
    _claim: Claim
    _tasks: RunTasks
    _ledger: Ledger
    cancelling: bool = field(init=False, default=False)
    cancel_reason: str = field(init=False, default="")
    pausing: bool = field(init=False, default=False)
    _function_begun: bool = field(init=False, default=False)
    _cancel_raised: bool = field(init=False, default=False)
    _cleanups: int = field(init=False, default=0)  # cleanup scopes that the run is in now

    def begin(self) -> None:
        """The function is about to begin: from now on a cancellation may be raised. Before this, its task would end
        silently."""
        self._function_begun = True
        if self._claim.task.cancel_requested:
            self.cancel(self._claim.task.cancel_reason)
        if self.cancelling:
            self._tasks.idle.start()
        if self._claim.task.pause_requested:
            self.pause()

    def cancel(self, reason: str) -> None:
        self.cancel_reason = self.cancel_reason or reason  # the first request may have no reason
        if self.cancelling or not self._run.live:
            return
        self.cancelling = True
        self._run.refresh()
        self._raise_unless_replaying()

    def cancelled(self) -> asyncio.CancelledError:
        """The exception that ctx calls raise in a cancelled run."""
        self._cancel_raised = True
        return asyncio.CancelledError(self.cancel_reason or "the run was cancelled")

    def raise_if_due(self) -> bool:
        """A cancellation is raised once, and not inside a cleanup scope. It waits while the run is replayed: the code
        is not yet where it was cancelled."""
        main = self._tasks.main
        if not self._is_due() or main is None or _current_task() is main:
            return False  # a task cannot cancel itself: its next ctx call raises
        self._cancel_raised = True
        main.cancel(self.cancel_reason or "the run was cancelled")
        return True

    def _is_due(self) -> bool:
        return self.cancelling and self._function_begun and not self._cancel_raised and not self._cleanups

    def _raise_unless_replaying(self) -> None:
        if self._run.state is RunState.RUNNING and not self._ledger.replaying:
            self.raise_if_due()

    def pause(self) -> None:
        """Begin nothing more. When no task is in a step and nothing is in flight, the run is handed back."""
        if self._run.live:
            self.pausing = True
            self._run.refresh()
            self._tasks.idle.start()

    def release_if_paused(self) -> bool:
        """Must be called when the run is idle and there is nothing to deliver."""
        if self.pausing and not self._tasks.in_step and not self._claim.in_flight:
            self._run.release("paused")
        return self.pausing

    def enter_cleanup(self) -> None:
        self._cleanups += 1

    def leave_cleanup(self) -> bool:
        """Returns whether the code that leaves the scope must raise a cancellation."""
        self._cleanups -= 1
        if not self._cleanups:
            self._raise_unless_replaying()
        return self._is_due() and self._run.state is RunState.RUNNING and not self._ledger.replaying


class Cleanup:
    """A scope in which steps run even after the run was cancelled, within the time that the server allows for it (5
    minutes by default): `async with ctx.cleanup():`."""

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        self._scope: Scope | None = None

    async def __aenter__(self) -> None:
        scope = place.get()
        assert type(scope) is Scope
        self._scope = scope
        scope.cleanups += 1
        self._interruption.enter_cleanup()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scope is not None:
            self._scope.cleanups -= 1
            self._scope = None
            if self._interruption.leave_cleanup() and error is None:
                raise self._interruption.cancelled()


def _current_task() -> "asyncio.Task[object] | None":
    """None in a callback, even in one called outside of the loop by a process signal or a test."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def in_cleanup() -> bool:
    """Whether the calling workflow code is in a cleanup scope."""
    scope = place.get()
    return type(scope) is Scope and scope.cleanups > 0

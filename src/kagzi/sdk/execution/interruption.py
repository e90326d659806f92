"""What is asked of a run from outside: to stop, or to pause. And the scope in which a stopped run may clean up."""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from ..workflow.current import place
from .scopes import Scope
from .state import State

if TYPE_CHECKING:
    from .run_execution import Run


class Interruption:
    __slots__ = ("_cancel_raised", "_cleanups", "_run", "cancel_reason", "cancelling", "may_raise", "pausing")

    def __init__(self, run: "Run") -> None:
        self._run = run
        self.cancelling = False
        self.cancel_reason = ""
        self.pausing = False
        self.may_raise = False  # the function is about to begin: a task that has not begun would end without a word
        self._cancel_raised = False
        self._cleanups = 0  # scopes that the run is in now

    def cancel(self, reason: str) -> None:
        run = self._run
        self.cancel_reason = self.cancel_reason or reason  # who hears of it first may not know why
        if self.cancelling or run.state not in (State.RUNNING, State.PARKING):
            return
        self.cancelling = True
        run.hinder()
        if run.state is State.RUNNING and not run.replaying:
            self.raise_if_due()

    def cancelled(self) -> asyncio.CancelledError:
        """What a ctx call raises in a run that is cancelled."""
        self._cancel_raised = True
        return asyncio.CancelledError(self.cancel_reason or "the run was cancelled")

    @property
    def is_due(self) -> bool:
        return self.cancelling and self.may_raise and not self._cancel_raised and not self._cleanups

    def raise_if_due(self) -> bool:
        """A cancellation is raised once, not inside of a cleanup scope. While the run is replayed it has to wait: the code is
        not where it was cancelled."""
        run = self._run
        if not self.is_due or run.main is None or _current_task() is run.main:
            return False  # a task cannot be cancelled from within: its next ctx call raises
        self._cancel_raised = True
        run.main.cancel(self.cancel_reason or "the run was cancelled")
        return True

    def pause(self) -> None:
        """Begin nothing more; when nothing is in a step or on its way, the run is handed back."""
        if self._run.state in (State.RUNNING, State.PARKING):
            self.pausing = True
            self._run.hinder()
            self._run.quiet.start()

    def release_if_paused(self) -> bool:
        """To be called when the run is quiet and there is nothing to deliver."""
        run = self._run
        if not self.pausing:
            return False
        if not run.in_step and not run.in_flight:
            run.release("paused")
        return True

    def enter_cleanup(self) -> None:
        self._cleanups += 1

    def leave_cleanup(self) -> None:
        self._cleanups -= 1
        if not self._cleanups and self._run.state is State.RUNNING and not self._run.replaying:
            self.raise_if_due()


class Cleanup:
    """A scope in which steps run also after the run was cancelled, within the time that the server allows for it (5
    minutes by default): `async with ctx.cleanup():`."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._scope: Scope | None = None

    async def __aenter__(self) -> None:
        scope = place.get()
        assert type(scope) is Scope
        self._scope = scope
        scope.cleanups += 1
        self._run.interruption.enter_cleanup()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scope is not None:
            self._scope.cleanups -= 1
            self._scope = None
            interruption = self._run.interruption
            interruption.leave_cleanup()
            run_goes_on = self._run.state is State.RUNNING and not self._run.replaying
            if error is None and run_goes_on and interruption.is_due:
                raise interruption.cancelled()


def _current_task() -> "asyncio.Task[object] | None":
    """None in a callback; also in one that a signal of the process or a test called outside of the loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def in_cleanup() -> bool:
    """Whether the calling workflow code is in a cleanup scope."""
    scope = place.get()
    return type(scope) is Scope and scope.cleanups > 0

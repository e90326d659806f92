"""Hooks the observer in: temporarily replaces the parts of the SDK that every call of a workflow passes through."""

import hashlib
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Any

from ...core.errors import Diverged
from ...sdk.execution.calls import steps as step_calls
from ...sdk.execution.calls.bodies import StepBody
from ...sdk.execution.ledger import PATCH, Ledger
from ...sdk.execution.run_execution import RunExecution
from ...sdk.execution.scopes import Scope
from ...sdk.execution.timed_waits import TimedWaits
from .observation import Observer


@contextmanager
def observing(observer: Observer) -> Generator[None]:
    """Observe every run that this process executes within the block."""
    with ExitStack() as replaced:
        _replace(replaced, RunExecution, "__init__", _observed_init(observer))
        _replace(replaced, RunExecution, "take", _observed_take(observer))
        _replace(replaced, RunExecution, "finish", _observed_finish(observer))
        _replace(replaced, RunExecution, "diverge", _observed_diverge(observer))
        _replace(replaced, Scope, "allot", _observed_allot(observer))
        _replace(replaced, Scope, "derive", _same_in_every_run())
        _replace(replaced, Ledger, "know", _observed_know(observer))
        _replace(replaced, TimedWaits, "_add", _observed_wait(observer))
        _replace(replaced, step_calls, "perform", _observed_perform(observer))
        yield


def _replace(replaced: ExitStack, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    replaced.callback(setattr, owner, name, original)


def _observed_init(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., None]) -> Any:
        def init(self: RunExecution, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            observer.began(self)

        return init

    return make


def _observed_take(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Any:
        def take(self: RunExecution, step_id: str, kind: Any) -> Any:
            step = original(self, step_id, kind)
            if kind != PATCH:
                frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  this thread's stack
                observer.awaited(self, step_id, kind, frame, recorded=step is not None)
            return step

        return take

    return make


def _observed_finish(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., None]) -> Any:
        def finish(self: RunExecution, send: Callable[[], None]) -> None:
            argument: Any = send.args[0] if isinstance(send, partial) and send.args else None
            observer.ended(self, argument if isinstance(argument, BaseException) else None)
            original(self, send)

        return finish

    return make


def _observed_diverge(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Any:
        def diverge(self: RunExecution, error: Diverged) -> Any:
            observer.diverges(self, error)
            return original(self, error)

        return diverge

    return make


def _observed_allot(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., str]) -> Any:
        def allot(self: Scope, name: str, key: object = None) -> str:
            step_id = original(self, name, key)
            frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  this thread's stack
            observer.made(self, step_id, _outermost_of_sdk(frame))
            return step_id

        return allot

    return make


def _outermost_of_sdk(frame: FrameType) -> FrameType:
    """The frame of the public method that the workflow code called."""
    while frame.f_back is not None and frame.f_back.f_code.co_filename == frame.f_code.co_filename:
        frame = frame.f_back
    return frame


def _same_in_every_run() -> Callable[[Any], Any]:
    """ctx.uuid() and ctx.random() return the same values in every run with the same input, so that results can be
    compared."""

    def make(original: Callable[..., bytes]) -> Any:
        def derive(self: Scope, what: str, run_id: str) -> bytes:
            task = self.run.task
            digest = hashlib.blake2b(task.input.data, digest_size=16).hexdigest()
            return original(self, what, f"{task.workflow_type}/{digest}")

        return derive

    return make


def _observed_know(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., None]) -> Any:
        def know(self: Ledger, step_id: str, seq: int) -> None:
            original(self, step_id, seq)
            observer.knows(self, step_id)

        return know

    return make


def _observed_wait(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Any:
        def add(self: TimedWaits, step_id: str, kind: Any, *args: Any) -> Any:
            wait = original(self, step_id, kind, *args)
            run: Any = self._run  # pyright: ignore[reportPrivateUsage]  within the test kit
            observer.waits(run, step_id, kind)
            return wait

        return add

    return make


def _observed_perform(observer: Observer) -> Callable[[Any], Any]:
    def make(original: Callable[..., Any]) -> Any:
        async def perform(run: RunExecution, body: StepBody, attempt: int) -> Any:
            return await observer.body(run, body, lambda: original(run, body, attempt))

        return perform

    return make

"""The Context of a workflow function: facts about its run, and the durable calls."""

import uuid
from collections.abc import Coroutine
from datetime import datetime
from functools import cached_property
from typing import Any, NoReturn, TypeAlias, TypeVar, Unpack, overload

from ...core.checks.values import optional_name
from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.public import exported
from ...core.times import from_datetime, to_datetime, us_from_timedelta
from ..execution.calls.continuing import continue_as_new
from ..execution.calls.waits import NO_DEFAULT, execute_sleep, execute_wait_for
from ..execution.interruption import Cleanup
from .branching import BranchCalls
from .call_sites import called
from .children import ChildHandle, ChildKeywords, child_options, execute_child, execute_start_child
from .patches import changed
from .retry import Retry
from .run_log import RunLog
from .signals import Signal
from .signatures import check_name
from .step import StepCall, here, step_options
from .workflow import Workflow

T = TypeVar("T")
D = TypeVar("D")
I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  input and output, as in the documentation

Call: TypeAlias = Coroutine[Any, Any, T]


@exported
class Context(BranchCalls):
    """The first argument of a workflow function.

    Everything that does not follow from the input and from recorded results goes through it: steps, waits, time,
    randomness. Each branch of `parallel`, `map` and `race` has its own scope: `parallel[3]/charge`, `race[quote]/ask`.
    """

    @cached_property
    def log(self) -> RunLog:
        """A logger for the workflow that logs each message once, not again on replay."""
        return RunLog(self._run)

    def step(
        self,
        name: str,
        *,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        key: object = None,
        once: bool = False,
        returns: Any = None,
    ) -> StepCall:
        """Declare a step: `await ctx.step("charge", retry=..., timeout="30s").run(charge_card, order)`.

        Args:
            name: The name of the step. Names may repeat: the second `charge` is `charge#2`.
            retry: When to try again. Default: the workflow's policy, else the worker's, else the server's (3 attempts).
            timeout: The longest time for each attempt. Default: none.
            key: Identifies the step instead of its place in the order, for collections whose order may change.
            once: At most one execution, whatever happens. If its worker is lost meanwhile, the step fails (kind LOST).
            returns: The type of the result. Default: the return annotation of the function, or of the one that a
                lambda calls.
        """
        call = StepCall(self._run, step_options(name, retry, timeout, once=once), key)
        return call if returns is None else call.returns(returns)

    def sleep(self, name: str, duration: Duration) -> Call[None]:
        """Sleep. The sleep survives crashes and restarts, and needs no worker while it lasts.

        Args:
            name: The name of the sleep.
            duration: How long, at most 100 years: `"30s"`, `"3 days"`.
        """
        duration_us = us_from_timedelta(parse_duration(duration, what="duration"))
        step_id = self._allot("sleep", name)
        return called(execute_sleep(self._run, step_id, name, duration_us=duration_us), f"ctx.sleep({name!r})")

    def sleep_until(self, name: str, until: datetime) -> Call[None]:
        """Sleep until a point in time. One in the past is recorded, and the call returns at once.

        Args:
            name: The name of the sleep.
            until: The point in time, with a time zone.
        """
        if not isinstance(until, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
            raise InvalidArgument(f"until={until!r} is not a datetime. Write datetime(..., tzinfo=UTC).", field="until")
        until_us = from_datetime(until, what="until")
        step_id = self._allot("sleep_until", name)
        sleeping = execute_sleep(self._run, step_id, name, until_us=max(until_us, 1))
        return called(sleeping, f"ctx.sleep_until({name!r})")

    @overload
    def wait_for(self, signal: Signal[T], *, timeout: Duration | None = None) -> Call[T]: ...
    @overload
    def wait_for(self, signal: Signal[T], *, timeout: Duration, default: D) -> Call[T | D]: ...
    def wait_for(self, signal: Signal[Any], *, timeout: Duration | None = None, default: Any = NO_DEFAULT) -> Call[Any]:
        """Wait for the next signal of this name. Signals that arrived before are taken at once, the oldest first.

        Args:
            signal: The signal to wait for.
            timeout: How long to wait. Default: no limit.
            default: The value to return if no signal arrives in time. Without it, TimeoutError is raised.
        """
        if not isinstance(signal, Signal):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
            raise InvalidArgument(
                f'ctx.wait_for({signal!r}): not a Signal. Write approved = Signal("approved", bool) and wait for it.',
                field="signal",
            )
        timeout_us = None if timeout is None else us_from_timedelta(parse_duration(timeout, what="timeout"))
        if timeout is None and default is not NO_DEFAULT:
            raise InvalidArgument("default= needs a timeout=: without one the wait does not end.", field="default")
        step_id = self._allot("wait_for", signal.name)
        waiting = execute_wait_for(self._run, step_id, signal, timeout_us, default)
        return called(waiting, f"ctx.wait_for({signal.name!r})")

    @overload
    def child(self, workflow: Workflow[I, O], input: I, **options: Unpack[ChildKeywords]) -> Call[O]: ...
    @overload
    def child(self, workflow: Workflow[None, O], **options: Unpack[ChildKeywords]) -> Call[O]: ...
    def child(self, workflow: Workflow[Any, Any], input: Any = ..., **options: Unpack[ChildKeywords]) -> Call[Any]:
        """Run another workflow as a step of this one and return its result.

        Args:
            workflow: The workflow to run.
            input: Its input.
            options: An id, a timeout and more: see [ChildKeywords](#childkeywords).

        Raises ChildError if the child does not complete.
        """
        checked = child_options(self._run, workflow, input, options)
        child = execute_child(self._run, self._allot("child", workflow.name), checked)
        return called(child, f"ctx.child({workflow.name!r})")

    @overload
    def start_child(
        self, workflow: Workflow[I, O], input: I, **options: Unpack[ChildKeywords]
    ) -> Call[ChildHandle[O]]: ...
    @overload
    def start_child(self, workflow: Workflow[None, O], **options: Unpack[ChildKeywords]) -> Call[ChildHandle[O]]: ...
    def start_child(
        self, workflow: Workflow[Any, Any], input: Any = ..., **options: Unpack[ChildKeywords]
    ) -> Call[ChildHandle[Any]]:
        """Start a child without awaiting its end: `handle = await ctx.start_child(...)`, then `await handle.result()`.

        `workflow`, `input` and `options` are those of `child`.
        """
        checked = child_options(self._run, workflow, input, options)
        child = execute_start_child(self._run, self._allot("start_child", workflow.name), checked)
        return called(child, f"ctx.start_child({workflow.name!r})")

    def cleanup(self) -> Cleanup:
        """A scope whose steps run even if the run was cancelled: `async with ctx.cleanup():`."""
        here(self._run, "ctx.cleanup()")
        return Cleanup(self._run.interruption)

    def changed(self, change: str) -> bool:
        """Whether this run executes the new code: False for runs that passed this point before the change was deployed,
        True for others.

        Args:
            change: The name of the change, for example `"ask-twice"`. Every replay gets the same result for it.
        """
        return changed(self._run, here(self._run, f"ctx.changed({change!r})"), check_name(change, what="change"))

    def set_status(self, text: str, *, progress: float | None = None) -> None:
        """Report progress, shown by `kagzi get`, `kagzi tail` and `run.status_text`. The last call counts.

        Args:
            text: Free text, at most 1,024 bytes.
            progress: 0 to 1, or None.
        """
        here(self._run, "ctx.set_status()")
        self._run.status.set(text, progress)

    def set_state(self, value: Any) -> None:
        """Publish the state of the workflow, shown by `await run.state()` and `kagzi get`. The last call counts.

        Args:
            value: Anything that has a JSON form, at most 64 KiB: a dict, a dataclass, a model. It is written at most
                twice a second and kept after the end of the run. The workflow cannot read it back.

        Raises InvalidArgument for a value without a JSON form, or one that is too large.
        """
        here(self._run, "ctx.set_state()")
        self._run.status.set_state(value)

    def continue_as_new(self, input: Any = None, *, version: int | str | None = None) -> NoReturn:
        """End this run and continue as a new run of the same workflow, with an empty history. Never returns.

        Args:
            input: The input of the new run.
            version: The version of the workflow that continues. Default: the default version.

        The new run keeps the workflow_id, labels, deadline and unread signals, and the state until it sets its own;
        `run.result()` waits for the last run.

        If the server refuses the new run, for example because `version` is deprecated, that is raised here: the run is
        replayed for it.
        """
        scope = here(self._run, "ctx.continue_as_new()")
        payload = self._run.workflow.write_input(input)
        checked = "" if version is None else str(version)
        optional_name(checked, "version")
        continue_as_new(self._run, scope, payload, checked)

    def _allot(self, call: str, name: str) -> str:
        checked = check_name(name, what="name")
        return here(self._run, f"ctx.{call}({name!r})").allot(checked)

    def now(self) -> datetime:
        """The time of the last result (before the first one: of the start), in UTC. The same on every replay."""
        here(self._run, "ctx.now()")
        now_us = self._run.delivery.now_us
        if now_us is None:
            raise self._run.release_for_replay()
        return to_datetime(now_us)

    def uuid(self) -> uuid.UUID:
        """A UUID that is the same on every replay, and different for every call and run."""
        return uuid.UUID(bytes=self._derive("$uuid"), version=4)

    def random(self) -> float:
        """A number in [0, 1) that is the same on every replay, and different for every call and run."""
        return (int.from_bytes(self._derive("$random")[:7], "big") >> 3) / (1 << 53)

    def _derive(self, what: str) -> bytes:
        return here(self._run, f"ctx.{what[1:]}()").derive(what, self._run.run_id)

"""The Context of a workflow function: the run it is part of, and the calls that survive it."""

import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, Unpack, overload

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.public import exported
from ...core.times import from_datetime, to_datetime, us_from_timedelta
from ..execution.calls.waits import NO_DEFAULT, execute_sleep, execute_wait_for
from ..execution.ending import ContinuedAsNew
from ..execution.interruption import Cleanup
from ..execution.run_execution import RunExecution
from .branching import map_items, parallel, race
from .call_sites import called
from .children import ChildHandle, ChildKeywords, child_options, execute_child, execute_start_child
from .patches import changed
from .retry import Retry
from .run_log import RunLog
from .signals import Signal, Won
from .signatures import check_name
from .step import StepCall, here, step_options
from .workflow import Workflow

T = TypeVar("T")
D = TypeVar("D")
R = TypeVar("R")
I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  input and output, as in the documentation
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")

A: TypeAlias = Awaitable[T]
Call: TypeAlias = Coroutine[Any, Any, T]
FailFast = Literal["fail-fast"]
Collect = Literal["collect"]


@exported
class Context:
    """What a workflow works with: the first argument of its function.

    Everything that does not follow from the input and from recorded results goes through it: steps, waits, time,
    chance. Each branch of `parallel`, `map` and `race` has a scope of its own: `parallel[3]/charge`, `race[quote]/ask`.
    """

    def __init__(self, run: RunExecution) -> None:
        self._run = run

    @cached_property
    def log(self) -> RunLog:
        """A logger for the workflow that logs each message once, not again on replay."""
        return RunLog(self._run)

    @property
    def run_id(self) -> str:
        """The id of this run."""
        return self._run.run_id

    @property
    def workflow_id(self) -> str:
        """The id the run was started with, or a generated one."""
        return self._run.task.workflow_id

    @property
    def namespace(self) -> str:
        """The namespace of the run."""
        return self._run.task.namespace_id

    @property
    def workflow_type(self) -> str:
        """The name of the workflow."""
        return self._run.task.workflow_type

    @property
    def version(self) -> str:
        """The version of the workflow that the run is pinned to."""
        return self._run.task.version

    @property
    def attempt(self) -> int:
        """The attempt of the whole run: 1, or more if the run itself is retried."""
        return self._run.task.attempt

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the run, read-only."""
        return MappingProxyType(dict(self._run.task.labels))

    @property
    def scheduled_at(self) -> datetime | None:
        """The time for which a schedule started this run (UTC); None for a run that no schedule started.

        Use it instead of `now()` for the day or hour that the run is about: a run that is late or backfilled has the
        time it stands for, and so have its retries, forks and successors (`continue_as_new`). A triggered run has the
        time of the trigger. Children have none: pass it on as input.
        """
        scheduled_at_us = self._run.task.scheduled_at_us
        return to_datetime(scheduled_at_us) if scheduled_at_us else None

    @property
    def is_replaying(self) -> bool:
        """Whether the code repeats what it has done before. For logs and metrics; never let it decide what the workflow
        does."""
        return self._run.ledger.replaying

    def step(
        self,
        name: str,
        *,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        key: object = None,
        once: bool = False,
    ) -> StepCall:
        """A step: `await ctx.step("charge", retry=..., timeout="30s").run(charge_card, order)`.

        Args:
            name: What the step is called. Names may repeat: the second `charge` is `charge#2`.
            retry: When to try again. Default: the workflow's, the worker's, the server's (3 attempts), in this order.
            timeout: The longest time for each attempt. Default: none.
            key: Identifies the step instead of its place in the order, for collections whose order may change.
            once: At most one execution, whatever happens; if its worker is lost meanwhile the step fails (kind LOST).
        """
        return StepCall(self._run, step_options(name, retry, timeout, once=once), key)

    def sleep(self, name: str, duration: Duration) -> Call[None]:
        """Sleep. The sleep survives crashes and restarts, and needs no worker while it lasts.

        Args:
            name: What the sleep is called.
            duration: How long, at most 100 years: `"30s"`, `"3 days"`.
        """
        duration_us = us_from_timedelta(parse_duration(duration, what="duration"))
        step_id = self._allot("sleep", name)
        return called(execute_sleep(self._run, step_id, name, duration_us=duration_us), f"ctx.sleep({name!r})")

    def sleep_until(self, name: str, until: datetime) -> Call[None]:
        """Sleep until a moment. One that has passed is recorded and returns at once.

        Args:
            name: What the sleep is called.
            until: The moment, with a time zone.
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
        """Wait for the next signal of this name; one that came early is taken at once, the oldest first.

        Args:
            signal: The signal to wait for.
            timeout: How long to wait. Default: for ever.
            default: What to return if none comes in time. Without it TimeoutError is raised.
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
            input: What it is given.
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
        """Start a child and go on: `handle = await ctx.start_child(...)`, later `await handle.result()`.

        `workflow`, `input` and `options` are those of `child`.
        """
        checked = child_options(self._run, workflow, input, options)
        child = execute_start_child(self._run, self._allot("start_child", workflow.name), checked)
        return called(child, f"ctx.start_child({workflow.name!r})")

    @overload
    def parallel(self, a: A[T1], b: A[T2], /, *, on_error: FailFast = ...) -> Call[tuple[T1, T2]]: ...
    @overload
    def parallel(self, a: A[T1], b: A[T2], c: A[T3], /, *, on_error: FailFast = ...) -> Call[tuple[T1, T2, T3]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], c: A[T3], d: A[T4], /, *, on_error: FailFast = ...
    ) -> Call[tuple[T1, T2, T3, T4]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], c: A[T3], d: A[T4], e: A[T5], /, *, on_error: FailFast = ...
    ) -> Call[tuple[T1, T2, T3, T4, T5]]: ...
    @overload
    def parallel(self, aws: Iterable[A[T]], /, *, on_error: FailFast = ...) -> Call[list[T]]: ...
    @overload
    def parallel(self, a: A[T1], b: A[T2], /, *, on_error: Collect) -> Call[tuple[T1 | Exception, T2 | Exception]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], c: A[T3], /, *, on_error: Collect
    ) -> Call[tuple[T1 | Exception, T2 | Exception, T3 | Exception]]: ...
    @overload
    def parallel(
        self, a: A[Any], b: A[Any], c: A[Any], d: A[Any], /, *more: A[Any], on_error: Collect
    ) -> Call[tuple[Any, ...]]: ...
    @overload
    def parallel(self, aws: Iterable[A[T]], /, *, on_error: Collect) -> Call[list[T | Exception]]: ...
    @overload
    def parallel(
        self,
        a: A[Any],
        b: A[Any],
        c: A[Any],
        d: A[Any],
        e: A[Any],
        f: A[Any],
        /,
        *more: A[Any],
        on_error: FailFast = ...,
    ) -> Call[tuple[Any, ...]]: ...
    def parallel(self, *aws: Any, on_error: Literal["fail-fast", "collect"] = "fail-fast") -> Call[Any]:
        """Do several things at once: `a, b = await ctx.parallel(one(ctx), two(ctx))`, or a list from an iterable.

        Args:
            aws: Coroutines, or one iterable of them.
            on_error: `"fail-fast"` (the default): the first error cancels the others and is raised when they have
                ended. `"collect"`: errors are returned in the places of results.

        What has completed is not done again when the run is retried.
        """
        return parallel(self._run, aws, on_error)

    @overload
    def map(
        self,
        name: str,
        items: Iterable[T],
        fn: Callable[[T], Coroutine[Any, Any, R]],
        *,
        key: Callable[[T], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
    ) -> Call[list[R]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[T],
        fn: Callable[[T], R],
        *,
        key: Callable[[T], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
    ) -> Call[list[R]]: ...
    def map(
        self,
        name: str,
        items: Iterable[Any],
        fn: Callable[..., Any],
        *,
        key: Callable[[Any], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
    ) -> Call[list[Any]]:
        """One step for each item. Returns their results in the order of the items.

        Args:
            name: What the steps are called: `name[0]`, `name[1]` ..., or `name[key]`.
            items: The items.
            fn: The function, sync or async, called with one item.
            key: Names the step of an item, for collections whose order may change. Keys must differ.
            limit: How many run at once. Default: all.
            retry: As in `step`.
            timeout: As in `step`.
        """
        return map_items(self._run, name, items, fn, key, limit, step_options(name, retry, timeout))

    @overload
    def race(self, a: Awaitable[T1], b: Awaitable[T2], /) -> Call[T1 | T2]: ...
    @overload
    def race(self, a: Awaitable[T1], b: Awaitable[T2], c: Awaitable[T3], /) -> Call[T1 | T2 | T3]: ...
    @overload
    def race(
        self, a: Awaitable[T1], b: Awaitable[T2], c: Awaitable[T3], d: Awaitable[T4], /
    ) -> Call[T1 | T2 | T3 | T4]: ...
    @overload
    def race(self, **aws: Awaitable[T]) -> Call[Won[T]]: ...
    def race(self, *aws: Any, **named: Any) -> Call[Any]:
        """The result of what finishes first; the others are cancelled. An error that comes first is raised; a sleep
        returns None.

        Args:
            aws: Coroutines.
            named: Coroutines by name, instead of `aws`: then the result is `Won(name, value)`.

        Who won is recorded before this returns.
        """
        return race(self._run, aws, named)

    def cleanup(self) -> Cleanup:
        """A scope whose steps run also when the run was cancelled: `async with ctx.cleanup():`."""
        here(self._run, "ctx.cleanup()")
        return Cleanup(self._run.interruption)

    def changed(self, change: str) -> bool:
        """Whether a run may take new code: False for runs that passed this point before the change was deployed, True
        for others.

        Args:
            change: The name of the change, for example `"ask-twice"`. Every replay gets the same answer for it.
        """
        return changed(self._run, here(self._run, f"ctx.changed({change!r})"), check_name(change, what="change"))

    def set_status(self, text: str, *, progress: float | None = None) -> None:
        """Say how far the workflow is: shown by `kagzi get`, `kagzi tail` and `run.status_text`. The last one counts.

        Args:
            text: Free text, at most 1,024 bytes.
            progress: 0 to 1, or None.
        """
        here(self._run, "ctx.set_status()")
        self._run.status.set(text, progress)

    def continue_as_new(self, input: Any = None, *, version: int | str | None = None) -> NoReturn:
        """End this run and continue as a new one of the same workflow, with an empty history. Never returns.

        Args:
            input: What the new run is given.
            version: The version of the workflow that continues. Default: the default version.

        The new run has the same workflow_id, labels, deadline and unread signals; `run.result()` waits for the last
        one.
        """
        here(self._run, "ctx.continue_as_new()")
        payload = self._run.workflow.write_input(input, hook=self._run.services.hook)
        raise ContinuedAsNew(payload, "" if version is None else str(version))

    def _allot(self, call: str, name: str) -> str:
        checked = check_name(name, what="name")
        return here(self._run, f"ctx.{call}({name!r})").allot(checked)

    def now(self) -> datetime:
        """The time of the last result (at first, of the start), in UTC: the same on every replay."""
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

"""What a workflow function gets: the run it is part of, and the calls that survive it."""

import logging
import uuid
from collections.abc import Coroutine, Mapping, MutableMapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeVar, overload

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.public import exported
from ...core.times import from_datetime, to_datetime, us_from_timedelta
from ..execution.calls.waits import NO_DEFAULT, execute_sleep, execute_wait_for
from ..execution.ending import ContinuedAsNew
from ..execution.interruption import Cleanup
from ..execution.run_execution import RunExecution
from ..worker.log_context import current_fields, fields_of
from .branching import ContextBranches
from .call_sites import called
from .children import ChildHandle, ChildOptions, OnClose, execute_child, execute_start_child
from .patches import changed
from .retry import Retry
from .signals import Signal
from .signatures import check_name
from .step import StepCall, here, step_options
from .workflow import Workflow

T = TypeVar("T")
D = TypeVar("D")
I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  input and output, as in the documentation

_logger = logging.getLogger("kagzi.workflow")


class RunLog(logging.LoggerAdapter[logging.Logger]):
    """The logger of a run, `ctx.log`. Silent while the run is replayed: each message is logged once."""

    def __init__(self, run: RunExecution) -> None:
        self._run = run
        super().__init__(_logger, fields_of(run.task))

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802  the name is logging's
        return not self._run.ledger.replaying and self.logger.isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **current_fields(), **(kwargs.get("extra") or {})}
        return msg, kwargs


@exported
class Context(ContextBranches):
    """What a workflow works with: the first argument of its function.

    Everything that does not follow from the input and from recorded results goes through it: steps, waits, time,
    chance.
    """

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

    def sleep(self, name: str, duration: Duration) -> Coroutine[Any, Any, None]:
        """Sleep. The sleep survives crashes and restarts, and needs no worker while it lasts.

        Args:
            name: What the sleep is called.
            duration: How long, at most 100 years: `"30s"`, `"3 days"`.
        """
        duration_us = us_from_timedelta(parse_duration(duration, what="duration"))
        step_id = self._allot("sleep", name)
        return called(execute_sleep(self._run, step_id, name, duration_us=duration_us), f"ctx.sleep({name!r})")

    def sleep_until(self, name: str, until: datetime) -> Coroutine[Any, Any, None]:
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
    def wait_for(self, signal: Signal[T], *, timeout: Duration | None = None) -> Coroutine[Any, Any, T]: ...
    @overload
    def wait_for(self, signal: Signal[T], *, timeout: Duration, default: D) -> Coroutine[Any, Any, T | D]: ...
    def wait_for(
        self, signal: Signal[Any], *, timeout: Duration | None = None, default: Any = NO_DEFAULT
    ) -> Coroutine[Any, Any, Any]:
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
    def child(
        self,
        workflow: Workflow[I, O],
        input: I,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        on_close: OnClose = "cancel",
        on_conflict: Literal["fail", "attach"] = "fail",
        concurrency_key: str = "",
    ) -> Coroutine[Any, Any, O]: ...
    @overload
    def child(
        self,
        workflow: Workflow[None, O],
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        on_close: OnClose = "cancel",
        on_conflict: Literal["fail", "attach"] = "fail",
        concurrency_key: str = "",
    ) -> Coroutine[Any, Any, O]: ...
    def child(self, workflow: Workflow[Any, Any], input: Any = ..., **options: Any) -> Coroutine[Any, Any, Any]:
        """Run another workflow as a step of this one and return its result.

        Args:
            workflow: The workflow to run.
            input: What it is given.
            id: Its workflow_id. Default: a new one.
            timeout: The child fails with kind TIMEOUT if it has not ended after this time. Default: that of the
                workflow.
            on_close: What happens to the child when this run ends first: `"cancel"` (the default), or `"abandon"`
                leaves it alone.
            on_conflict: What happens if `id` is active already: `"fail"` (the default) raises AlreadyExists, `"attach"`
                waits for that run.
            concurrency_key: Limits per key of the child's workflow count the runs with the same key.

        Raises ChildError if the child does not complete.
        """
        child = execute_child(self._run, *self._child("child", workflow, input, **options))
        return called(child, f"ctx.child({workflow.name!r})")

    @overload
    def start_child(
        self,
        workflow: Workflow[I, O],
        input: I,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        on_close: OnClose = "cancel",
        on_conflict: Literal["fail", "attach"] = "fail",
        concurrency_key: str = "",
    ) -> Coroutine[Any, Any, ChildHandle[O]]: ...
    @overload
    def start_child(
        self,
        workflow: Workflow[None, O],
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        on_close: OnClose = "cancel",
        on_conflict: Literal["fail", "attach"] = "fail",
        concurrency_key: str = "",
    ) -> Coroutine[Any, Any, ChildHandle[O]]: ...
    def start_child(
        self, workflow: Workflow[Any, Any], input: Any = ..., **options: Any
    ) -> Coroutine[Any, Any, ChildHandle[Any]]:
        """Start a child and go on: `handle = await ctx.start_child(...)`, later `await handle.result()`.

        `workflow`, `input`, `id`, `timeout`, `on_close`, `on_conflict` and `concurrency_key` are those of `child`.
        """
        child = execute_start_child(self._run, *self._child("start_child", workflow, input, **options))
        return called(child, f"ctx.start_child({workflow.name!r})")

    def _child(
        self,
        call: str,
        workflow: Workflow[Any, Any],
        input: Any,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        on_close: OnClose = "cancel",
        on_conflict: str = "fail",
        concurrency_key: str = "",
    ) -> tuple[str, ChildOptions]:
        """The step id and the checked options of a call."""
        if not isinstance(workflow, Workflow):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
            raise InvalidArgument(
                f"{workflow!r} is not a workflow. Decorate the function with @workflow.", field="workflow"
            )
        if on_close not in ("cancel", "abandon"):
            raise InvalidArgument(f'on_close={on_close!r} must be "cancel" or "abandon".', field="on_close")
        if on_conflict not in ("fail", "attach"):
            raise InvalidArgument(f'on_conflict={on_conflict!r} must be "fail" or "attach".', field="on_conflict")
        payload = None if input is ... else workflow.write_input(input, hook=self._run.services.hook)
        timeout_us = None if timeout is None else us_from_timedelta(parse_duration(timeout, what="timeout"))
        attach = on_conflict == "attach"
        options = ChildOptions(workflow, payload, id or "", timeout_us, on_close, attach, concurrency_key)
        return self._allot(call, workflow.name), options

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

"""A handle to one run."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar, cast, overload

from ...core.commands import SignalGiven, SignalReplacement
from ...core.duration import Duration, parse_duration
from ...core.error_details import ErrorDetail, ErrorKind
from ...core.errors import InvalidArgument, PreconditionFailed, RunError
from ...core.ids import is_uuid
from ...core.public import exported
from ...core.records import Payload, RunEnd, RunRecord
from ...core.states import RunStatus
from ...wire.runs import read_run_status
from ..workflow.codec import ANY, Codec, read_payload, write_payload
from ..workflow.signals import Signal
from .calls import RunCalls
from .explanation import Explanation
from .run_info import RunInfo, run_info
from .run_namespace import RunNamespace
from .signals_sent import signal_given, signal_name
from .step_records import StepRecord, step_record

T = TypeVar("T")
O_co = TypeVar("O_co", covariant=True)

_NULL = Payload(b"null")


@exported
class Run(Generic[O_co]):
    """A handle to a run. Made by `client.start`, `client.get` and `client.list`, without a call of its own.

    From `client.get(id)` the run is looked up with the first call: the run with that id, else the latest with that
    workflow_id.
    """

    def __init__(
        self,
        calls: RunCalls,
        namespace: str,
        *,
        output: Codec[Any],
        draw_id: Callable[[], str],
        asked_for: str = "",
        run_id: str = "",
        workflow_id: str = "",
        url: str = "",
        created: bool = False,
        last_status: RunStatus | None = None,
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._output = output
        self._draw_id = draw_id
        self._asked_for = asked_for
        self._run_id = run_id
        self._workflow_id = workflow_id
        self._url = url
        self._created = created
        self._last_status = last_status
        self._status_text = ""
        self._progress: float | None = None

    def __repr__(self) -> str:
        return f"<Run {self._run_id or self._asked_for!r}>"

    @property
    def id(self) -> str:
        """The run id. Raises PreconditionFailed for a handle by workflow_id until the first call was made."""
        return self._run_id or self._unknown("id")

    @property
    def workflow_id(self) -> str:
        """The workflow_id. Raises PreconditionFailed for a handle by run id until the first call was made."""
        return self._workflow_id or self._unknown("workflow_id")

    @property
    def namespace(self) -> "RunNamespace[RunQuery[O_co]]":
        """The namespace of the run, as text. Of a handle by id it says where to look, too: `client.get(id).namespace("production")`."""
        return RunNamespace(self._namespace, self._in_namespace)

    def _in_namespace(self, namespace: str) -> "RunQuery[O_co]":
        if self._run_id or not self._asked_for:
            raise PreconditionFailed(
                f"{self!r} is in namespace {self._namespace!r}. Look elsewhere with client.get(id).namespace({namespace!r})."
            )
        if not (isinstance(cast("object", namespace), str) and namespace):
            raise InvalidArgument(f"namespace={namespace!r} must be the name of a namespace.", field="namespace")
        return RunQuery(self._calls, namespace, output=self._output, draw_id=self._draw_id, asked_for=self._asked_for)

    @property
    def url(self) -> str:
        """The address of the run's page; empty if the server has no pages."""
        return self._url or self._calls.url(self._namespace, self.id)

    @property
    def created(self) -> bool:
        """Whether `start()` made this run; False if it returned one that was there already."""
        return self._created

    @property
    def last_status(self) -> RunStatus | None:
        """The status that the last call returned; None before the first. `await run.status()` asks the server."""
        return self._last_status

    @property
    def status_text(self) -> str:
        """What the workflow last said with `ctx.set_status`, as of the last `status()` or `info()`."""
        return self._status_text

    @property
    def progress(self) -> float | None:
        """The progress, 0 to 1, that the workflow last set with `ctx.set_status`, as of the last `status()` or
        `info()`."""
        return self._progress

    async def status(self) -> RunStatus:
        """Ask the server for the state of the run. Raises NotFound."""
        return (await self._ask()).status

    async def info(self) -> RunInfo:
        """Everything about the run but its payloads and steps. Raises NotFound."""
        return run_info(await self._ask())

    async def explain(self) -> Explanation:
        """Why the run is where it is, in words: `print(await run.explain())`."""
        return await self._calls.explain(self._namespace, await self._known_id())

    async def result(self, *, timeout: Duration | None = None) -> O_co:  # noqa: ASYNC109  a word of the public API
        """Wait for the end and return the output; of a run that was continued as new, the output of the last one.

        Args:
            timeout: Stop waiting after this time with TimeoutError; the run goes on. Default: wait for ever.

        Raises RunError if the run did not complete, NotFound.
        """
        timeout_s = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
        try:
            async with asyncio.timeout(timeout_s):
                end = await self._calls.ended(self._namespace, await self._known_id())
        except TimeoutError:
            raise TimeoutError(f"run {self._run_id or self._asked_for} has not ended within {timeout}.") from None
        return self._output_of(end)

    def _output_of(self, end: RunEnd) -> O_co:
        self._last_status = end.status
        if end.status is RunStatus.COMPLETED:
            what = f"output of run {end.run.run_id}"
            output: O_co = read_payload(self._output, end.output or _NULL, what=what, hook=None)
            return output
        raise RunError.of(end.run.run_id, end.status.value, end.error or ErrorDetail(kind=ErrorKind.PERMANENT))

    async def steps(self) -> list[StepRecord]:
        """The steps of the run, in the order in which they were begun."""
        steps = await self._calls.steps(self._namespace, await self._known_id())
        return [step_record(step) for step in steps]

    async def events(self, *, after: int = 0) -> AsyncGenerator[dict[str, Any]]:
        """Everything that happens to the run, in order, as it happens, until it has ended; what happened before comes
        first.

        Args:
            after: Leave out events up to this `seq`: go on where you left off.

        Yields dicts of plain values with "kind" and "seq" (docs/reference/events.md). The last event of a run that was
        continued as new has "continued_as": `client.get` that one to go on.
        """
        async with aclosing(self._calls.events(self._namespace, await self._known_id(), after)) as events:
            async for event in events:
                yield event

    # --- changing ------------------------------------------------------------------------------------------------------

    @overload
    async def signal(self, signal: Signal[T], value: T, /, *, replace: bool = False) -> None: ...
    @overload
    async def signal(self, signal: str, value: Any = None, /, *, replace: bool = False) -> None: ...
    async def signal(self, signal: Signal[Any] | str, value: Any = None, /, *, replace: bool = False) -> None:
        """Send the run a message. It is kept until the run waits for it. A handle by workflow_id means the run that has
        not ended.

        Args:
            signal: The signal, or its name.
            value: What is sent.
            replace: Replace a value that no code has received instead of sending another one: the value that does not
                fit and for which the run is paused, and the run goes on; else the oldest of that name.

        Raises PreconditionFailed if the run has ended or there is nothing to replace, NotFound, ResourceExhausted if
        too many are unread, InvalidArgument if the value does not fit the signal's type.
        """
        given = signal_given(signal, value, request_id=self._draw_id())
        if replace:
            change = SignalReplacement(name=given.name, payload=given.payload, request_id=given.request_id)
            await self._replace_signal(change)
        elif self._run_id or is_uuid(self._asked_for):
            await self._signal(given)
        else:
            self._run_id = await self._calls.signal(self._namespace, given, workflow_id=self._asked_for)
            self._workflow_id = self._asked_for

    async def drop_signal(self, signal: Signal[Any] | str, /) -> None:
        """Drop a value that no code has received: the value that does not fit and for which the run is paused, and the
        run waits for the next; else the oldest of that name.

        Args:
            signal: The signal, or its name.

        Raises PreconditionFailed if there is none.
        """
        await self._replace_signal(
            SignalReplacement(name=signal_name(signal), payload=None, request_id=self._draw_id())
        )

    async def _replace_signal(self, change: SignalReplacement) -> None:
        if self._run_id or is_uuid(self._asked_for):
            answer = await self._calls.replace_signal(self._namespace, change, run_id=await self._known_id())
        else:
            answer = await self._calls.replace_signal(self._namespace, change, workflow_id=self._asked_for)
            self._run_id, self._workflow_id = answer.run_id, self._asked_for
        self._last_status = read_run_status(answer.status)

    async def _signal(self, given: SignalGiven) -> None:
        run_id = await self._known_id()
        while True:
            try:
                await self._calls.signal(self._namespace, given, run_id=run_id)
            except PreconditionFailed:
                continued_as = (await self._calls.get(self._namespace, run_id)).continued_as
                if not continued_as:
                    raise
                run_id = continued_as
            else:
                return

    async def cancel(self, reason: str = "") -> None:
        """Ask the run to stop. It ends as cancelled once its code has cleaned up; a run that has ended stays as it is.

        Args:
            reason: Shown with the run, and the message of the CancelledError in its code.
        """
        request_id = self._draw_id()
        await self._change(lambda run_id: self._calls.cancel(self._namespace, run_id, reason, request_id))

    async def terminate(self, reason: str = "") -> None:
        """End the run now, as cancelled, without cleanup. A run that has ended stays as it is.

        Args:
            reason: Shown with the run.
        """
        request_id = self._draw_id()
        await self._change(lambda run_id: self._calls.terminate(self._namespace, run_id, reason, request_id))

    async def pause(self, reason: str = "") -> None:
        """Begin no more steps until `resume()`. Steps that run are finished and recorded; signals and timers wait.

        Args:
            reason: Shown with the run.
        """
        await self._change(lambda run_id: self._calls.pause(self._namespace, run_id, reason))

    async def resume(self) -> None:
        """Let a paused run go on, also one that the engine paused because of a problem."""
        await self._change(lambda run_id: self._calls.resume(self._namespace, run_id))

    async def _change(self, change: Callable[[str], Awaitable[RunStatus]]) -> None:
        """Of a run that was continued as new, the last one is meant."""
        run_id: str | None = await self._known_id()
        while run_id:
            self._last_status = await change(run_id)
            if self._last_status is not RunStatus.COMPLETED:
                return
            run_id = (await self._calls.get(self._namespace, run_id)).continued_as

    async def retry(self, *, from_step: str = "") -> None:
        """Reopen a failed run; the results from before the step are kept.

        Args:
            from_step: The step id to go on from. Default: the step that failed the run.

        Raises PreconditionFailed if the run has not failed, or its workflow_id is active again.
        """
        run_id = await self._known_id()
        self._last_status = await self._calls.retry(self._namespace, run_id, from_step, self._draw_id())

    async def fork(
        self,
        *,
        from_step: str = "",
        outputs: Mapping[str, Any] | None = None,
        version: int | str | None = None,
        id: str | None = None,
    ) -> "Run[O_co]":
        """Start a new run with the results that this one had before `from_step` was begun; without it, with all that are recorded.

        Args:
            from_step: The step id to go on from. Default: the new run goes on from where this one is.
            outputs: Results to replace, by step id.
            version: The version of the workflow. Default: that of this run.
            id: The workflow_id of the new run. Default: a new one.
        """
        replaced = {
            step_id: write_payload(ANY, value, what=f"output of step {step_id!r}", hook=None)
            for step_id, value in (outputs or {}).items()
        }
        forked = await self._calls.fork(
            self._namespace,
            await self._known_id(),
            from_step,
            replaced,
            version="" if version is None else str(version),
            workflow_id=id or "",
            request_id=self._draw_id(),
        )
        return Run(
            self._calls,
            self._namespace,
            output=self._output,
            draw_id=self._draw_id,
            run_id=forked.run_id,
            workflow_id=forked.workflow_id,
            url=forked.url,
            created=True,
        )

    # --- finding it ----------------------------------------------------------------------------------------------------

    async def _ask(self) -> RunRecord:
        record = await (self._calls.get(self._namespace, self._run_id) if self._run_id else self._find())
        self._last_status = record.status
        self._status_text = record.status_text
        self._progress = record.progress
        return record

    async def _known_id(self) -> str:
        if not self._run_id:
            await self._find()
        return self._run_id

    async def _find(self) -> RunRecord:
        record = await self._calls.find(self._namespace, self._asked_for)
        self._run_id = record.run.run_id
        self._workflow_id = record.workflow_id
        self._last_status = record.status
        return record

    def _unknown(self, what: str) -> str:
        raise PreconditionFailed(f"{what} of {self!r} is not known yet. Ask the server first: await run.status()")


@exported
class RunQuery(Run[O_co]):
    """A run as `client.get(id)` looks for it. Awaited, it tells what there is: `status = (await client.get(id)).status`."""

    def __await__(self) -> Generator[Any, None, RunInfo]:
        """See `info()`. To wait for the end of the run, `await run.result()`."""
        return self.info().__await__()

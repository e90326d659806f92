"""A handle to one run."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar, overload

from ..core.commands import SignalGiven, SignalReplacement
from ..core.duration import Duration, parse_duration
from ..core.errors import ErrorDetail, ErrorKind, PreconditionFailed, RunError
from ..core.ids import is_uuid
from ..core.records import Payload, RunEnd, RunRecord
from ..core.states import RunStatus
from ..wire.runs import read_run_status
from .calls import RunCalls
from .codec import ANY, Codec, read_payload, write_payload
from .explanation import Explanation
from .run_info import RunInfo, run_info
from .signals import Signal
from .signals_sent import signal_given, signal_name
from .step_records import StepRecord, step_record

T = TypeVar("T")
O_co = TypeVar("O_co", covariant=True)

_NULL = Payload(b"null")


class Run(Generic[O_co]):
    """A run of a workflow. Made by `client.start`, `client.get` and `client.list`, without a call of its own.

    From `client.get(id)` it is found when first asked: the run with that id, else the latest with that workflow_id.
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
        """The run id. Raises PreconditionFailed for a handle by workflow_id that was not asked anything yet."""
        return self._run_id or self._unknown("id")

    @property
    def workflow_id(self) -> str:
        return self._workflow_id or self._unknown("workflow_id")

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def url(self) -> str:
        """Where its page is; empty if the server has no pages."""
        return self._url or self._calls.url(self._namespace, self.id)

    @property
    def created(self) -> bool:
        """False if start() returned a run that was there already."""
        return self._created

    @property
    def last_status(self) -> RunStatus | None:
        """The status as last heard of, without asking. `await run.status()` asks."""
        return self._last_status

    @property
    def status_text(self) -> str:
        """What the workflow said with `ctx.set_status`, as last heard of: by `status()` or `info()`."""
        return self._status_text

    @property
    def progress(self) -> float | None:
        """How far the workflow said it is (0..1), as last heard of."""
        return self._progress

    async def status(self) -> RunStatus:
        return (await self._ask()).status

    async def info(self) -> RunInfo:
        """Everything about the run but its payloads and steps."""
        return run_info(await self._ask())

    async def explain(self) -> Explanation:
        """Why the run is where it is, in words: `print(await run.explain())`."""
        return await self._calls.explain(self._namespace, await self._known_id())

    async def result(self, *, timeout: Duration | None = None) -> O_co:  # noqa: ASYNC109  a word of the public API
        """Wait for the end and return the output; of a run that was continued as new, the output of the last one. Raises RunError
        if the run did not complete, TimeoutError after `timeout` (the run goes on), NotFound."""
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
        """Its steps, in the order in which they were begun."""
        steps = await self._calls.steps(self._namespace, await self._known_id())
        return [step_record(step) for step in steps]

    async def events(self, *, after: int = 0) -> AsyncGenerator[dict[str, Any]]:
        """Everything that happens to the run, in order, as it happens, until it has ended: dicts of plain values with a "kind",
        and with the "seq" from which to go on another time (`after`). What happened before is told first.

        The last event of a run that was continued as new has "continued_as": `client.get` that one to go on.
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
        """Send the run a message. It is kept until the run waits for it. By workflow_id: to the run that has not ended.

        With `replace` the value takes the place of one that no code has received: the one that the run is paused for because it
        does not fit, and the run goes on; else the oldest of that name that the run has not waited for.

        Raises PreconditionFailed if the run has ended or there is nothing to replace, NotFound, ResourceExhausted if too many are
        unread, InvalidArgument if the value does not fit the signal's type.
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
        """Drop a value that no code has received: the one that the run is paused for because it does not fit, and the run goes on
        waiting; else the oldest of that name that the run has not waited for. Raises PreconditionFailed if there is none."""
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
        """Ask the run to stop. It ends as cancelled once its code has cleaned up; a run that has ended stays as it is."""
        request_id = self._draw_id()
        await self._change(lambda run_id: self._calls.cancel(self._namespace, run_id, reason, request_id))

    async def terminate(self, reason: str = "") -> None:
        """End the run now, as cancelled, without cleanup. A run that has ended stays as it is."""
        request_id = self._draw_id()
        await self._change(lambda run_id: self._calls.terminate(self._namespace, run_id, reason, request_id))

    async def pause(self, reason: str = "") -> None:
        """Begin no more steps until `resume()`. What runs is finished and recorded; signals and timers wait."""
        await self._change(lambda run_id: self._calls.pause(self._namespace, run_id, reason))

    async def resume(self) -> None:
        """Let a paused run go on; also one that the engine paused because of a problem."""
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
        """Reopen a failed run at the step that failed it, or at `from_step`; results from before are kept.

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
        """A new run with the results that this one had before `from_step` was begun; without it, with all that are recorded: it
        goes on from where this run is. `outputs` replace some of them, by step id.

        `version`: of the workflow, if another one is to go on; `id`: the workflow_id of the new run.
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

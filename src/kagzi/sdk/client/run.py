"""A handle to one run. Each method builds its request here and sends it over the client's connection."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ...core.duration import Duration
from ...core.error_details import ErrorDetail, ErrorKind
from ...core.errors import InvalidArgument, PreconditionFailed, RunError
from ...core.events import LAST_SEQ
from ...core.public import exported
from ...core.records import Explanation, Payload, RunEnd, RunKey
from ...core.states import RunStatus
from ...v1 import workflow_pb2 as pb
from ..workflow.codec import read_payload
from ..workflow.signals import Signal
from .backend import encode_signal, signal_name
from .run_namespace import RunNamespace
from .run_records import RunInfo, read_explanation
from .run_reference import RunReference

if TYPE_CHECKING:
    from .step_logs import StepLogs
    from .step_records import StepRecord

T = TypeVar("T")
O_co = TypeVar("O_co", covariant=True)

_NULL = Payload(b"null")


@exported
class Run(RunReference, Generic[O_co]):
    """A handle to a run. Made by `client.start`, `client.get` and `client.list`. Creating it makes no call.

    A handle from `client.get(id)` looks up the run with its first call: the run with that id, else the latest run with
    that workflow_id.
    """

    @property
    def id(self) -> str:
        """The run id. Raises PreconditionFailed for a handle by workflow_id before the first call."""
        return self._run_id or self._unknown("id")

    @property
    def workflow_id(self) -> str:
        """The workflow_id. Raises PreconditionFailed for a handle by run id before the first call."""
        return self._workflow_id or self._unknown("workflow_id")

    @property
    def namespace(self) -> "RunNamespace[RunQuery[O_co]]":
        """The namespace of the run, as text. A handle by id can also be moved to another one:
        `client.get(id).namespace("production")`."""
        return RunNamespace(self._namespace, self._in_namespace)

    def _in_namespace(self, namespace: str) -> "RunQuery[O_co]":
        if self._run_id or not self._searched_id:
            elsewhere = f"To look in another one, use client.get(id).namespace({namespace!r})."
            raise PreconditionFailed(f"{self!r} is in namespace {self._namespace!r}. {elsewhere}")
        if not (isinstance(cast("object", namespace), str) and namespace):
            raise InvalidArgument(f"namespace={namespace!r} must be the name of a namespace.", field="namespace")
        return RunQuery(self._backend, namespace, output=self._output, searched_id=self._searched_id)

    @property
    def url(self) -> str:
        """The URL of the run's page; empty if the server has no pages."""
        return self._url or self._backend.url(RunKey(self._namespace, self.id))

    @property
    def created(self) -> bool:
        """Whether `start()` created this run; False if it returned an existing one."""
        return self._created

    @property
    def last_status(self) -> RunStatus | None:
        """The status that the last call returned; None before the first. `await run.status()` asks the server."""
        return self._last_status

    @property
    def last_info(self) -> RunInfo | None:
        """The run as the last `status()`, `info()` or list returned it; None before the first call."""
        return self._info

    @property
    def status_text(self) -> str:
        """The text that the workflow last set with `ctx.set_status`, as of the last `status()` or `info()`."""
        return "" if self._info is None else self._info.status_text

    @property
    def progress(self) -> float | None:
        """The progress, 0 to 1, that the workflow last set with `ctx.set_status`, as of the last `status()` or
        `info()`."""
        return None if self._info is None else self._info.progress

    async def status(self) -> RunStatus:
        """Read the status of the run from the server. Raises NotFound."""
        return (await self._ask()).status

    async def info(self) -> RunInfo:
        """Everything about the run except its steps. Raises NotFound."""
        return await self._ask()

    async def explain(self) -> Explanation:
        """Explain in words why the run is in its state: `print(await run.explain())`."""
        request = pb.ExplainWorkflowRequest(namespace_id=self._namespace, run_id=(await self._key()).run_id)
        response = await self._backend.call(lambda link: link.workflows.ExplainWorkflow, request)
        return read_explanation(response)

    @overload
    async def state(self) -> Any: ...
    @overload
    async def state(self, model: type[T]) -> T | None: ...
    async def state(self, model: Any = Any) -> Any:
        """Read the value that the workflow last set with `ctx.set_state`; None if it has set none.

        Args:
            model: The type to decode it to, for example the class that the workflow uses. Default: plain JSON.

        Raises NotFound, and InvalidArgument if the state does not match the model.
        """
        return self._read_state(await self._ask(), model)

    @overload
    def states(self) -> AsyncGenerator[Any]: ...
    @overload
    def states(self, model: type[T]) -> AsyncGenerator[T]: ...
    async def states(self, model: Any = Any) -> AsyncGenerator[Any]:
        """The state of the run, if it has one, and then each new one, until the run has ended. States that are replaced
        before they could be read are left out. `model` is as in `state`."""
        yielded_at = None
        async with aclosing(self._state_changes()) as changes:
            async for info in changes:
                if info.state_at is not None and info.state_at != yielded_at:
                    yielded_at = info.state_at
                    yield self._read_state(info, model)

    async def result(self, *, timeout: Duration | None = None) -> O_co:
        """Wait for the end and return the output. For a run that was continued as new: the output of the last run.

        Args:
            timeout: Raise TimeoutError after this time; the run continues. Default: no limit.

        Raises RunError if the run did not complete, NotFound.
        """
        end = await self._end(timeout)
        if end.status is RunStatus.COMPLETED:
            what = f"output of run {end.run.run_id}"
            output: O_co = read_payload(self._output, end.output or _NULL, what=what)
            return output
        raise RunError.of(end.run.run_id, end.status.value, end.error or ErrorDetail(kind=ErrorKind.PERMANENT))

    async def wait(self, *, timeout: Duration | None = None) -> RunInfo:
        """Wait for the end, whatever it is, and return the ended run: its status, with its output or error. For a run
        that was continued as new: the last run. `timeout` is as in `result`."""
        end = await self._end(timeout)
        return await self._backend.get(self._namespace, run_id=end.run.run_id)

    async def _end(self, timeout: Duration | None) -> RunEnd:
        async with self._backend.time_limit(timeout, f"run {self._run_id or self._searched_id}"):
            end = await self._backend.ended(await self._key())
        self._last_status = end.status
        return end

    async def steps(self, *, forgotten: bool = False) -> "list[StepRecord]":
        """The steps of the run, in the order in which they began.

        Args:
            forgotten: Instead, the steps that `retry` has discarded, with their results: the latest retry first. The
                newest 2,000 steps of a run are kept, of up to 8 MiB. They are not part of the history.
        """
        from .step_records import list_steps  # noqa: PLC0415  not loaded by programs that only start runs

        return await list_steps(self._backend, await self._key(), forgotten=forgotten)

    async def logs(self, step: str = "") -> "StepLogs":
        """The log lines of its steps, or of the `step` with that id: the last 200 lines or 64 KiB of each."""
        from .step_logs import list_logs  # noqa: PLC0415  as above

        return await list_logs(self._backend, await self._key(), step)

    async def events(self, *, after: int = 0) -> AsyncGenerator[dict[str, Any]]:
        """All events of the run, in order, past ones first, until the run has ended.

        Args:
            after: Leave out events up to this `seq`, to continue where you stopped.

        Yields dicts of plain values with "kind" and "seq" (docs/reference/events.md). The last event of a run that was
        continued as new has "continued_as": `client.get` that run to follow it.
        """
        async with aclosing(self._backend.events(await self._key(), after)) as events:
            async for event in events:
                yield event

    async def _state_changes(self) -> AsyncGenerator[RunInfo]:
        """The run whenever its state has changed, and when it has ended."""
        noticed_at = None
        async with aclosing(self.events(after=LAST_SEQ)) as events:
            async for event in events:
                if event.get("state_at") != noticed_at:
                    noticed_at = event.get("state_at")
                    yield await self._ask()
        yield await self._ask()

    async def export(self) -> AsyncIterator[bytes]:
        """The run with its whole history as lines of JSON, to be stored or imported elsewhere.

        Raises NotFound, and PreconditionFailed if the run changes meanwhile: pause it, or stop its workers.
        """
        from .operations.transfers import Transfers  # noqa: PLC0415  most programs do not use it

        run = await self._key()
        async for line in Transfers(self._backend.connection, run.namespace).export(run.run_id):
            yield line

    # --- changing -----------------------------------------------------------------------------------------------------

    @overload
    async def signal(
        self, signal: Signal[T], value: T, /, *, replace: bool = False, request_id: str | None = None
    ) -> bool: ...
    @overload
    async def signal(
        self, signal: str, value: Any = None, /, *, replace: bool = False, request_id: str | None = None
    ) -> bool: ...
    async def signal(
        self, signal: Signal[Any] | str, value: Any = None, /, *, replace: bool = False, request_id: str | None = None
    ) -> bool:
        """Send the run a signal. It is kept until the run waits for it. A handle by workflow_id means its open run.
        Returns whether the run was waiting for it.

        Args:
            signal: The signal, or its name.
            value: The value to send.
            replace: Replace a value that no code has received, instead of sending another one: the mismatching value
                for which the run is paused, and the run resumes; else the oldest of that name.
            request_id: An id of your own: a signal sent twice with it is one signal, also for the next run with the
                same workflow_id. Default: a new one.

        Raises PreconditionFailed if the run has ended or there is nothing to replace, NotFound, ResourceExhausted if
        too many are unread, InvalidArgument if the value does not match the signal's type.
        """
        name, payload = encode_signal(signal, value)
        request_id = request_id or self._backend.new_id()
        if replace:
            change = pb.ReplaceSignalRequest(signal_name=name, payload=payload, request_id=request_id)
            return await self._replace_signal(change)
        request = pb.SignalWorkflowRequest(signal_name=name, payload=payload, request_id=request_id)
        return await self._send_signal(request)

    async def drop_signal(self, signal: Signal[Any] | str, /, *, request_id: str | None = None) -> bool:
        """Drop a value that no code has received: the mismatching value for which the run is paused, and the run waits
        for the next one; else the oldest of that name. Returns whether the run was waiting for it.

        Args:
            signal: The signal, or its name.
            request_id: An id of your own: a call repeated with it takes effect once. Default: a new one.

        Raises PreconditionFailed if there is no such value.
        """
        request_id = request_id or self._backend.new_id()
        return await self._replace_signal(
            pb.ReplaceSignalRequest(signal_name=signal_name(signal), drop=True, request_id=request_id)
        )

    async def cancel(self, reason: str = "") -> None:
        """Ask the run to stop. It ends as cancelled once its code has cleaned up. Has no effect on an ended run.

        Args:
            reason: Shown with the run, and the message of the CancelledError in its code.
        """
        request = pb.CancelWorkflowRequest(reason=reason, request_id=self._backend.new_id())
        await self._change(lambda link: link.workflows.CancelWorkflow, request)

    async def terminate(self, reason: str = "") -> None:
        """End the run now, as cancelled, without cleanup; the `reason` is shown with it. Has no effect on an ended
        run."""
        request = pb.TerminateWorkflowRequest(reason=reason, request_id=self._backend.new_id())
        await self._change(lambda link: link.workflows.TerminateWorkflow, request)

    async def pause(self, reason: str = "") -> None:
        """Begin no more steps until `resume()`; the `reason` is shown with the run. Steps that are executing finish and
        are recorded; signals and timers wait."""
        await self._change(lambda link: link.workflows.PauseWorkflow, pb.PauseWorkflowRequest(reason=reason))

    async def resume(self) -> None:
        """Resume a paused run, also one that Kagzi paused because of a problem."""
        await self._change(lambda link: link.workflows.ResumeWorkflow, pb.ResumeWorkflowRequest())

    async def wake(self, step: str = "") -> bool:
        """Stop waiting: the next attempt of a step, the end of a sleep or a delayed start is due now, which the history
        records. Returns whether the run was waiting for it.

        Args:
            step: The step id. Default: the run itself if its start is delayed, else its only step with a timer.

        Raises PreconditionFailed if the run is paused or has ended, or waits for something other than a time.
        """
        woken, self._last_status = await self._backend.wake(await self._key(), step)
        return woken

    async def retry(self, *, from_step: str = "") -> None:
        """Reopen a failed run. The results of earlier steps are kept; `steps(forgotten=True)` has those of later ones.

        Args:
            from_step: The step id to continue from. Default: the step that failed the run.

        Raises PreconditionFailed if the run has not failed, or another run with its workflow_id is open.
        """
        request = pb.RetryWorkflowRequest(from_step=from_step, request_id=self._backend.new_id())
        await self._change(lambda link: link.workflows.RetryWorkflow, request)

    async def fork(
        self,
        *,
        from_step: str = "",
        outputs: Mapping[str, Any] | None = None,
        version: int | str | None = None,
        id: str | None = None,
    ) -> "Run[O_co]":
        """Start a new run with the results that this run had before `from_step` began; without it, with all recorded
        results.

        Args:
            from_step: The step id to continue from. Default: the new run continues from where this run is.
            outputs: Results to replace, by step id.
            version: The version of the workflow. Default: that of this run.
            id: The workflow_id of the new run. Default: a new one.
        """
        request = pb.ForkWorkflowRequest(
            from_step=from_step, version="" if version is None else str(version), workflow_id=id or ""
        )
        forked = await self._backend.fork(await self._key(), request, outputs or {})
        return Run(
            self._backend,
            self._namespace,
            output=self._output,
            run_id=forked.run_id,
            workflow_id=forked.workflow_id,
            url=forked.url,
            created=True,
        )


@exported
class RunQuery(Run[O_co]):
    """A run that `client.get(id)` looks up. Await it for its record: `status = (await client.get(id)).status`."""

    def __await__(self) -> Generator[Any, None, RunInfo]:
        """See `info()`. To wait for the end of the run, use `await run.result()`."""
        return self.info().__await__()

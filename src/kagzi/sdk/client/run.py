"""A handle to one run. Each verb builds its request here and sends it over the client's connection."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ...core.duration import Duration
from ...core.error_details import ErrorDetail, ErrorKind
from ...core.errors import InvalidArgument, PreconditionFailed, RunError
from ...core.ids import is_uuid
from ...core.public import exported
from ...core.records import Explanation, Payload, RunEnd, RunKey
from ...core.states import RunStatus
from ...v1 import workflow_pb2 as pb
from ...wire.common import write_payload
from ...wire.requests import read_run_status
from ..workflow import codec
from ..workflow.codec import ANY, Codec, read_payload
from ..workflow.signals import Signal
from .backend import Backend, Request, Response, encode_signal, signal_name, time_limit
from .run_namespace import RunNamespace
from .run_records import RunInfo, read_explanation

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc.aio

    from ..transport.connection import Link
    from .step_records import StepRecord

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
        backend: Backend,
        namespace: str,
        *,
        output: Codec[Any] = ANY,
        searched_id: str = "",
        run_id: str = "",
        workflow_id: str = "",
        url: str = "",
        created: bool = False,
        last_status: RunStatus | None = None,
        info: RunInfo | None = None,
    ) -> None:
        self._backend = backend
        self._namespace = namespace
        self._output = output
        self._searched_id = searched_id
        self._run_id = run_id
        self._workflow_id = workflow_id
        self._url = url
        self._created = created
        self._last_status = last_status
        self._info: RunInfo | None = None
        if info is not None:
            self._learn(info)

    def __repr__(self) -> str:
        return f"<Run {self._run_id or self._searched_id!r}>"

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
        """The namespace of the run, as text. Of a handle by id it says where to look, too:
        `client.get(id).namespace("production")`."""
        return RunNamespace(self._namespace, self._in_namespace)

    def _in_namespace(self, namespace: str) -> "RunQuery[O_co]":
        if self._run_id or not self._searched_id:
            raise PreconditionFailed(
                f"{self!r} is in namespace {self._namespace!r}. "
                f"To look in another one, use client.get(id).namespace({namespace!r})."
            )
        if not (isinstance(cast("object", namespace), str) and namespace):
            raise InvalidArgument(f"namespace={namespace!r} must be the name of a namespace.", field="namespace")
        return RunQuery(self._backend, namespace, output=self._output, searched_id=self._searched_id)

    @property
    def url(self) -> str:
        """The address of the run's page; empty if the server has no pages."""
        return self._url or self._backend.url(RunKey(self._namespace, self.id))

    @property
    def created(self) -> bool:
        """Whether `start()` made this run; False if it returned one that was there already."""
        return self._created

    @property
    def last_status(self) -> RunStatus | None:
        """The status that the last call returned; None before the first. `await run.status()` asks the server."""
        return self._last_status

    @property
    def last_info(self) -> RunInfo | None:
        """The run as the last `status()` or `info()` found it, or the list that it comes from; None before the
        first."""
        return self._info

    @property
    def status_text(self) -> str:
        """What the workflow last said with `ctx.set_status`, as of the last `status()` or `info()`."""
        return "" if self._info is None else self._info.status_text

    @property
    def progress(self) -> float | None:
        """The progress, 0 to 1, that the workflow last set with `ctx.set_status`, as of the last `status()` or
        `info()`."""
        return None if self._info is None else self._info.progress

    async def status(self) -> RunStatus:
        """Ask the server for the state of the run. Raises NotFound."""
        return (await self._ask()).status

    async def info(self) -> RunInfo:
        """Everything about the run but its steps. Raises NotFound."""
        return await self._ask()

    async def explain(self) -> Explanation:
        """Why the run is where it is, in words: `print(await run.explain())`."""
        request = pb.ExplainWorkflowRequest(namespace_id=self._namespace, run_id=(await self._key()).run_id)
        response = await self._backend.call(lambda link: link.workflows.ExplainWorkflow, request)
        return read_explanation(response)

    async def result(self, *, timeout: Duration | None = None) -> O_co:  # noqa: ASYNC109  a word of the public API
        """Wait for the end and return the output; of a run that was continued as new, the output of the last one.

        Args:
            timeout: Stop waiting after this time with TimeoutError; the run goes on. Default: wait for ever.

        Raises RunError if the run did not complete, NotFound.
        """
        end = await self._end(timeout)
        if end.status is RunStatus.COMPLETED:
            what = f"output of run {end.run.run_id}"
            output: O_co = read_payload(self._output, end.output or _NULL, what=what, hook=None)
            return output
        raise RunError.of(end.run.run_id, end.status.value, end.error or ErrorDetail(kind=ErrorKind.PERMANENT))

    async def wait(self, *, timeout: Duration | None = None) -> RunInfo:  # noqa: ASYNC109  a word of the public API
        """Wait for the end, whatever it is, and return the run as it ended: its status, with its output or its error.
        Of a run that was continued as new, that is the last one. `timeout` is as in `result`."""
        end = await self._end(timeout)
        return await self._backend.get(self._namespace, run_id=end.run.run_id)

    async def _end(self, timeout: Duration | None) -> RunEnd:  # noqa: ASYNC109  a word of the public API
        async with time_limit(timeout, f"run {self._run_id or self._searched_id}"):
            end = await self._backend.ended(await self._key())
        self._last_status = end.status
        return end

    async def steps(self) -> "list[StepRecord]":
        """The steps of the run, in the order in which they were begun."""
        from ...v1.admin_pb2 import ListStepsRequest  # noqa: PLC0415  those who only start runs do not pay for it
        from .step_records import read_step_record  # noqa: PLC0415  as above

        run = await self._key()
        request = ListStepsRequest(namespace_id=run.namespace, run_id=run.run_id, include_payloads=True)
        steps = self._backend.rows(lambda link: link.admin.ListSteps, request, lambda page: page.steps)
        return [read_step_record(step) async for step in steps]

    async def events(self, *, after: int = 0) -> AsyncGenerator[dict[str, Any]]:
        """Everything that happens to the run, in order, as it happens, until it has ended; what happened before comes
        first.

        Args:
            after: Leave out events up to this `seq`: go on where you left off.

        Yields dicts of plain values with "kind" and "seq" (docs/reference/events.md). The last event of a run that was
        continued as new has "continued_as": `client.get` that one to go on.
        """
        from .watching import Watch  # noqa: PLC0415  as above

        watch = Watch(self._backend.connection, await self._key(), after)
        async with aclosing(watch.events()) as events:
            async for event in events:
                yield event

    async def export(self) -> AsyncIterator[bytes]:
        """The run with its whole history as lines of JSON, to be kept or imported elsewhere.

        Raises NotFound, and PreconditionFailed if the run goes on meanwhile: pause it, or stop its workers.
        """
        from .operations.transfers import Transfers  # noqa: PLC0415  most programs never ask

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
        """Send the run a message. It is kept until the run waits for it. A handle by workflow_id means the run that has
        not ended. Returns whether the run was waiting for it.

        Args:
            signal: The signal, or its name.
            value: What is sent.
            replace: Replace a value that no code has received instead of sending another one: the value that does not
                fit and for which the run is paused, and the run goes on; else the oldest of that name.
            request_id: An id of your own: sent twice, it is one signal. Default: a new one.

        Raises PreconditionFailed if the run has ended or there is nothing to replace, NotFound, ResourceExhausted if
        too many are unread, InvalidArgument if the value does not fit the signal's type.
        """
        name, payload = encode_signal(signal, value)
        request_id = request_id or self._backend.new_id()
        if replace:
            change = pb.ReplaceSignalRequest(signal_name=name, payload=payload, request_id=request_id)
            return await self._replace_signal(change)
        request = pb.SignalWorkflowRequest(signal_name=name, payload=payload, request_id=request_id)
        await self._address(request)
        while True:
            try:
                response = await self._backend.call(lambda link: link.workflows.SignalWorkflow, request)
            except PreconditionFailed:
                ended = await self._backend.get(self._namespace, run_id=request.run_id) if request.run_id else None
                if ended is None or ended.continued_as is None:
                    raise
                request.run_id = ended.continued_as
            else:
                if request.workflow_id:
                    self._run_id, self._workflow_id = response.run_id, request.workflow_id
                return response.delivered

    async def drop_signal(self, signal: Signal[Any] | str, /, *, request_id: str | None = None) -> bool:
        """Drop a value that no code has received: the value that does not fit and for which the run is paused, and the
        run waits for the next; else the oldest of that name. Returns whether the run was waiting for it.

        Args:
            signal: The signal, or its name.
            request_id: An id of your own: sent twice, it is done once. Default: a new one.

        Raises PreconditionFailed if there is none.
        """
        request_id = request_id or self._backend.new_id()
        return await self._replace_signal(
            pb.ReplaceSignalRequest(signal_name=signal_name(signal), drop=True, request_id=request_id)
        )

    async def _replace_signal(self, request: pb.ReplaceSignalRequest) -> bool:
        await self._address(request)
        response = await self._backend.call(lambda link: link.workflows.ReplaceSignal, request)
        if request.workflow_id:
            self._run_id, self._workflow_id = response.run_id, request.workflow_id
        self._last_status = read_run_status(response.status)
        return response.resumed

    async def _address(self, request: pb.SignalWorkflowRequest | pb.ReplaceSignalRequest) -> None:
        """A workflow_id is left to the server: of its runs the one that has not ended is meant."""
        request.namespace_id = self._namespace
        if self._run_id or is_uuid(self._searched_id):
            request.run_id = (await self._key()).run_id
        else:
            request.workflow_id = self._searched_id

    async def cancel(self, reason: str = "") -> None:
        """Ask the run to stop. It ends as cancelled once its code has cleaned up; a run that has ended stays as it is.

        Args:
            reason: Shown with the run, and the message of the CancelledError in its code.
        """
        request = pb.CancelWorkflowRequest(reason=reason, request_id=self._backend.new_id())
        await self._change(lambda link: link.workflows.CancelWorkflow, request)

    async def terminate(self, reason: str = "") -> None:
        """End the run now, as cancelled, without cleanup; the `reason` is shown with it. A run that has ended stays as
        it is."""
        request = pb.TerminateWorkflowRequest(reason=reason, request_id=self._backend.new_id())
        await self._change(lambda link: link.workflows.TerminateWorkflow, request)

    async def pause(self, reason: str = "") -> None:
        """Begin no more steps until `resume()`; the `reason` is shown with the run. Steps that run are finished and
        recorded; signals and timers wait."""
        await self._change(lambda link: link.workflows.PauseWorkflow, pb.PauseWorkflowRequest(reason=reason))

    async def resume(self) -> None:
        """Let a paused run go on, also one that the engine paused because of a problem."""
        await self._change(lambda link: link.workflows.ResumeWorkflow, pb.ResumeWorkflowRequest())

    async def retry(self, *, from_step: str = "") -> None:
        """Reopen a failed run; the results from before the step are kept.

        Args:
            from_step: The step id to go on from. Default: the step that failed the run.

        Raises PreconditionFailed if the run has not failed, or its workflow_id is active again.
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
        """Start a new run with the results that this one had before `from_step` was begun; without it, with all that
        are recorded.

        Args:
            from_step: The step id to go on from. Default: the new run goes on from where this one is.
            outputs: Results to replace, by step id.
            version: The version of the workflow. Default: that of this run.
            id: The workflow_id of the new run. Default: a new one.
        """
        replaced = {
            step_id: codec.write_payload(ANY, value, what=f"output of step {step_id!r}", hook=None)
            for step_id, value in (outputs or {}).items()
        }
        request = pb.ForkWorkflowRequest(
            namespace_id=self._namespace,
            run_id=(await self._key()).run_id,
            from_step=from_step,
            outputs={step_id: write_payload(output) for step_id, output in replaced.items()},
            version="" if version is None else str(version),
            workflow_id=id or "",
            request_id=self._backend.new_id(),
        )
        forked = await self._backend.call(lambda link: link.workflows.ForkWorkflow, request)
        return Run(
            self._backend,
            self._namespace,
            output=self._output,
            run_id=forked.run_id,
            workflow_id=forked.workflow_id,
            url=forked.url,
            created=True,
        )

    async def _change(
        self, method: "Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Request, Response]]", request: Request
    ) -> None:
        self._last_status = await self._backend.change(method, request, await self._key())

    # --- finding it ---------------------------------------------------------------------------------------------------

    async def _ask(self) -> RunInfo:
        if self._run_id:
            return self._learn(await self._backend.get(self._namespace, run_id=self._run_id))
        return self._learn(await self._backend.find(self._namespace, self._searched_id))

    async def _key(self) -> RunKey:
        if not self._run_id:
            self._learn(await self._backend.find(self._namespace, self._searched_id))
        return RunKey(self._namespace, self._run_id)

    def _learn(self, info: RunInfo) -> RunInfo:
        self._run_id, self._workflow_id, self._last_status = info.id, info.workflow_id, info.status
        self._info = info
        return info

    def _unknown(self, what: str) -> str:
        raise PreconditionFailed(f"{what} of {self!r} is not known yet. Ask the server first: await run.status()")


@exported
class RunQuery(Run[O_co]):
    """A run as `client.get(id)` looks for it. Awaited, it tells what there is: `status = (await
    client.get(id)).status`."""

    def __await__(self) -> Generator[Any, None, RunInfo]:
        """See `info()`. To wait for the end of the run, `await run.result()`."""
        return self.info().__await__()

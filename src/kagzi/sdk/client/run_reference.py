"""The run that a handle refers to: looked up with the first call, then remembered."""

from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.ids import is_uuid
from ...core.records import ENCODING, RunKey
from ...core.states import RunStatus
from ...v1 import workflow_pb2 as pb
from ...wire.requests import read_run_status
from ..transport.payload_codec import refuse_encoded
from ..workflow.codec import ANY, Codec, codec_for
from .backend import Backend, Request, Response
from .run_records import RunInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc.aio

    from ..transport.link import Link


class RunReference:
    """A run by its run id or by an id still to be looked up, and what the last call returned about it."""

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

    def _read_state(self, info: RunInfo, annotation: Any) -> Any:
        if info.state_at is None:
            return None
        what = f"state of run {info.id}"
        try:
            return codec_for(annotation).decode(info.state, what=what)
        except InvalidArgument:
            refuse_encoded({ENCODING: info.encoding} if info.encoding else None, what)
            raise

    async def _change(
        self, method: "Callable[[Link], grpc.aio.UnaryUnaryMultiCallable[Request, Response]]", request: Request
    ) -> None:
        self._last_status = await self._backend.change(method, request, await self._key())

    async def _send_signal(self, request: pb.SignalWorkflowRequest) -> bool:
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

    async def _replace_signal(self, request: pb.ReplaceSignalRequest) -> bool:
        await self._address(request)
        response = await self._backend.call(lambda link: link.workflows.ReplaceSignal, request)
        if request.workflow_id:
            self._run_id, self._workflow_id = response.run_id, request.workflow_id
        self._last_status = read_run_status(response.status)
        return response.resumed

    async def _address(self, request: pb.SignalWorkflowRequest | pb.ReplaceSignalRequest) -> None:
        """A workflow_id is resolved by the server, which picks the open run."""
        request.namespace_id = self._namespace
        if self._run_id or is_uuid(self._searched_id):
            request.run_id = (await self._key()).run_id
        else:
            request.workflow_id = self._searched_id

"""Kagzi, the client, without await: the methods that differ. The others are generated from the async client."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, cast, overload

from ..core.duration import Duration
from ..sdk.client.client import Kagzi as AsyncKagzi
from ..sdk.client.start import ABSENT, StartKeywords
from ..sdk.transport.credentials import Tls
from ..sdk.transport.payload_codec import Codec
from ..sdk.workflow.workflow import Workflow
from .administration import Namespaces, Versions, Workers, WorkflowTypes
from .background import Background
from .calls import KagziCalls
from .keys import Keys
from .operations import Bulk, Schedules
from .run import Run
from .start_in import StartIn

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  as above


class Kagzi(KagziCalls):
    """A client for code without an event loop, such as Flask, Django and scripts: `with Kagzi.connect() as client:`.

    Its methods are those of `kagzi.Kagzi`, and wait for responses. Threads can share one client. Connect after a fork.
    """

    @classmethod
    def connect(
        cls,
        address: str | None = None,
        *,
        namespace: str | None = None,
        api_key: str | None = None,
        tls: bool | Tls | None = None,
        codec: Codec | None = None,
        timeout: Duration | None = None,
        call_timeout: Duration = "30s",
    ) -> Self:
        """Connect as `kagzi.Kagzi.connect` does, with the same `address`, `namespace`, `api_key`, `tls`, `codec`,
        `timeout` and `call_timeout`. Close the client, or use it with `with`."""

        async def connect() -> AsyncKagzi:
            return await AsyncKagzi.connect(
                address,
                namespace=namespace,
                api_key=api_key,
                tls=tls,
                codec=codec,
                timeout=timeout,
                call_timeout=call_timeout,
            )

        background = Background.acquire()
        try:
            return cls(background, background.call(connect))
        except BaseException:
            background.release()
            raise

    def close(self) -> None:
        """Close the connection. Calls that are still waiting fail; runs continue."""
        if not self._closed:
            self._closed = True
            try:
                self._background.call(self._client.close)
            finally:
                self._background.release()

    def in_namespace(self, namespace: str) -> "Kagzi":
        """A client for another `namespace` over the same connection, which this client closes."""
        other = Kagzi(self._background, self._client.in_namespace(namespace))
        other._closed = True
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @overload
    def start(self, workflow: Workflow[I, O], input: I, **options: Unpack[StartKeywords]) -> Run[O]: ...
    @overload
    def start(self, workflow: Workflow[None, O], **options: Unpack[StartKeywords]) -> Run[O]: ...
    @overload
    def start(self, workflow: str, input: Any = None, **options: Unpack[StartKeywords]) -> Run[Any]: ...
    def start(self, workflow: Workflow[Any, Any] | str, input: Any = ABSENT, **options: Any) -> Run[Any]:
        """Start a run of `workflow` with its `input`, durably. The `options` are those of `kagzi.Kagzi.start`, all as
        keywords.

        If the run already existed, `run.created` is False. Raises InvalidArgument, AlreadyExists, ResourceExhausted,
        Unavailable.
        """
        chosen = None if input is ABSENT else input
        return Run(self._background, self._background.call(lambda: self._client.start(workflow, chosen, **options)))

    @overload
    def start_many(
        self,
        workflow: Workflow[I, O],
        inputs: Iterable[I],
        *,
        on_error: Literal["raise"] = "raise",
        **options: Unpack[StartKeywords],
    ) -> list[Run[O]]: ...
    @overload
    def start_many(
        self,
        workflow: Workflow[I, O],
        inputs: Iterable[I],
        *,
        on_error: Literal["collect"],
        **options: Unpack[StartKeywords],
    ) -> list[Run[O] | Exception]: ...
    @overload
    def start_many(
        self,
        workflow: str,
        inputs: Iterable[Any],
        *,
        on_error: Literal["raise", "collect"] = "raise",
        **options: Unpack[StartKeywords],
    ) -> list[Any]: ...
    def start_many(
        self, workflow: Workflow[Any, Any] | str, inputs: Iterable[Any], *, on_error: Any = "raise", **options: Any
    ) -> list[Any]:
        """Start a run for each of the `inputs`, in few messages, all with the same `options`.

        Args:
            workflow: The workflow, or its name.
            inputs: The input of each run.
            on_error: `"raise"`: raise the first error after all starts have been answered. `"collect"`: return errors
                in the places of their runs.
            options: As in `start`.
        """

        async def start_all() -> list[Any]:
            starts = [self._client.start(workflow, each, **options) for each in inputs]
            started: list[Any] = await cast("Any", self._client).start_many(starts, on_error=on_error)
            return started

        runs = self._background.call(start_all)
        return [run if isinstance(run, Exception) else Run(self._background, run) for run in runs]

    @overload
    def get(self, id: str, *, namespace: str | None = None) -> Run[Any]: ...
    @overload
    def get(self, id: str, workflow: Workflow[Any, O], *, namespace: str | None = None) -> Run[O]: ...
    def get(self, id: str, workflow: Workflow[Any, Any] | None = None, *, namespace: str | None = None) -> Run[Any]:
        """A handle to the run `id`, as from `kagzi.Kagzi.get`: its results have the type of `workflow`, and it is
        looked up in `namespace` if that is not the client's. It makes no call until you use it."""
        if workflow is None:
            return Run(self._background, self._client.get(id, namespace=namespace))
        return Run(self._background, self._client.get(id, workflow, namespace=namespace))

    def cancel(self, id: str, reason: str = "", *, namespace: str | None = None) -> None:
        """Ask the run `id` to stop and clean up, for a `reason`, in the client's or another `namespace`. See
        `Run.cancel`."""

        async def cancel() -> None:
            await self._client.cancel(id, reason, namespace=namespace)

        self._background.call(cancel)

    @property
    def start_in(self) -> StartIn:
        """Start a run when your own transaction commits: `client.start_in(connection, workflow, input)`."""
        return StartIn(self._client.start_in)

    @property
    def schedules(self) -> Schedules:
        """Schedules: apply (see `kagzi.schedule`), get, list, pause, trigger, update and more."""
        return Schedules(self._background, self._client.schedules)

    @property
    def bulk(self) -> Bulk:
        """Cancel, retry, terminate or delete all runs that a filter matches."""
        return Bulk(self._background, self._client.bulk)

    @property
    def workflow_types(self) -> WorkflowTypes:
        """Workflow types as queues, and their limits."""
        return WorkflowTypes(self._background, self._client.workflow_types)

    @property
    def namespaces(self) -> Namespaces:
        """Namespaces: create, limit, disable, delete."""
        return Namespaces(self._background, self._client.namespaces)

    @property
    def keys(self) -> Keys:
        """API keys: create, list, rotate, revoke; and the audit."""
        return Keys(self._background, self._client.keys)

    @property
    def workers(self) -> Workers:
        """Workers: list, get, events, drain."""
        return Workers(self._background, self._client.workers)

    @property
    def versions(self) -> Versions:
        """Versions of workflows: list, counts, set_default, deprecate."""
        return Versions(self._background, self._client.versions)

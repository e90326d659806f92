"""A handle to one run."""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ..core.duration import Duration, parse_duration
from ..core.errors import ErrorDetail, ErrorKind, PreconditionFailed, RunError
from ..core.records import Payload, RunEnd, RunRecord
from ..core.states import RunStatus
from .calls import RunCalls
from .codec import Codec, read_payload
from .step_records import StepRecord, step_record

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

    async def status(self) -> RunStatus:
        record = await (self._calls.get(self._namespace, self._run_id) if self._run_id else self._find())
        self._last_status = record.status
        return record.status

    async def result(self, *, timeout: Duration | None = None) -> O_co:  # noqa: ASYNC109  a word of the public API
        """Wait for the end and return the output. Raises RunError if the run did not complete, TimeoutError after `timeout`
        (the run goes on), NotFound."""
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

    async def cancel(self, reason: str = "") -> None:
        """Ask the run to stop. It ends as cancelled once its code has cleaned up; a run that has ended stays as it is."""
        await self._calls.cancel(self._namespace, await self._known_id(), reason, self._draw_id())

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

"""Runs for clients: start, get, list, count and wait."""

import asyncio
from collections.abc import Sequence

import msgspec

from ...core import limits
from ...core.errors import InternalError, InvalidArgument, KagziError, PreconditionFailed
from ...core.limits import Settings
from ...core.providers import Clock, Ids
from ...core.records import RunEnd, RunFilter, RunKey, RunOrder, RunRecord
from ...core.run.commands import SendSignal, StartRequest, StartRun, start_run, start_time
from ...core.run.outcomes import Existing, Outcome, Started
from ...core.states import RunStatus
from ...core.times import Timestamp
from ...core.workflow_types.schema_check import Misfit
from ...store.protocol import Store, TypeKey
from ..checks import requests as checks
from ..checks.refusals import refusal_of
from ..checks.schemas import Schemas, input_misfit, input_refusal
from ..commit.journal import Journal
from ..matching.matcher import Matcher
from .namespaces import Namespaces
from .paging import Page, PageAsk, page_cursor, page_of, page_size, place_by
from .versions import Versions
from .waits import Deliver, WaitHub, Waits

_KnownVersions = dict[tuple[TypeKey, str], str]
"""The version of a start, by its type and the requested version."""
_TURN_S = 0.01  # how long checks may block the event loop


class Runs:
    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        settings: Settings,
        journal: Journal,
        matcher: Matcher,
        namespaces: Namespaces,
        waits: WaitHub,
        versions: Versions,
        schemas: Schemas,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._journal = journal
        self._matcher = matcher
        self._namespaces = namespaces
        self._waits = waits
        self._versions = versions
        self._schemas = schemas

    # --- starting -----------------------------------------------------------------------------------------------------

    async def start(self, request: StartRequest) -> Started | Existing:
        """Raises InvalidArgument, AlreadyExists, PreconditionFailed, ResourceExhausted, NotFound, Unavailable."""
        return await self._start(request, None)

    async def signal_with_start(self, request: StartRequest, signal: SendSignal) -> Started | Existing:
        """Starts a run, or finds the existing one, and sends it the signal in the same transaction."""
        checks.signal(signal, self._settings.payload_bytes)
        if not request.workflow_id:
            raise InvalidArgument(
                "workflow_id is empty. Name the run that is to be started, or to get the signal.", field="workflow_id"
            )
        if not signal.request_id:
            signal = msgspec.structs.replace(signal, request_id=request.request_id or self._ids.token())
        return await self._start(request, signal)

    async def _start(self, request: StartRequest, signal: SendSignal | None) -> Started | Existing:
        now = self._clock.now()
        checks.start(request, now, self._settings.payload_bytes)
        await self._namespaces.check(request.namespace)
        pinned = await self._pinned(request, {})
        if signal is not None:
            key = TypeKey(request.namespace, request.workflow_type)
            await self._schemas.check_signal_of_type(key, signal.name, signal.payload)
            signal = msgspec.structs.replace(signal, start=pinned)
        with self._matcher.assigning():
            command = self._command(pinned, now, signal)
            outcome = self._journal.enqueue(command)
        answer = _start_answer(await outcome, command, now)
        if isinstance(answer, KagziError):
            raise answer
        return answer

    async def start_many(self, requests: Sequence[StartRequest]) -> Sequence[Started | Existing | KagziError]:
        """One result each, in order: a refused start does not affect the others."""
        checks.batch_size(requests, limits.START_BATCH_ITEMS, "starts")
        now = self._clock.now()
        answers: list[Started | Existing | KagziError | None] = [None] * len(requests)
        by_namespace: dict[str, list[tuple[int, StartRequest]]] = {}
        versions: _KnownVersions = {}
        loop = asyncio.get_running_loop()
        yield_at_s = loop.time() + _TURN_S
        for index, request in enumerate(requests):
            if loop.time() > yield_at_s:  # checking inputs may take long
                await asyncio.sleep(0)
                yield_at_s = loop.time() + _TURN_S
            try:
                checks.start(request, now, self._settings.payload_bytes)
                if request.namespace not in by_namespace:
                    await self._namespaces.check(request.namespace)
                pinned = await self._pinned(request, versions)
            except KagziError as error:
                answers[index] = error
            else:
                by_namespace.setdefault(request.namespace, []).append((index, pinned))
        # A caller may disconnect at any await. There is none between here, where slots are reserved, and the journal,
        # which settles them.
        queued = [self._queue_starts(starts, now, answers) for starts in by_namespace.values()]
        for done in queued:
            await done
        return [_answered(answer) for answer in answers]

    def _queue_starts(
        self,
        requests: list[tuple[int, StartRequest]],
        now: Timestamp,
        answers: list[Started | Existing | KagziError | None],
    ) -> asyncio.Future[None]:
        """Done when all results are in `answers`."""
        left = len(requests)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        commands: dict[int, StartRun] = {}

        def take(outcomes: list[tuple[int, Outcome]]) -> None:
            nonlocal left
            for index, outcome in outcomes:
                answers[index] = _start_answer(outcome, commands[index], now)
            left -= len(outcomes)
            if left == 0 and not done.done():
                done.set_result(None)

        try:
            with self._matcher.assigning():
                commands.update((index, self._command(request, now)) for index, request in requests)
                self._journal.submit_many(list(commands.items()), take)
        except KagziError as error:
            for index, _ in requests:
                answers[index] = error
            done.set_result(None)
        return done

    async def _pinned(self, request: StartRequest, known: "_KnownVersions") -> StartRequest:
        """Pins the run's version; `known` caches the versions of the batch. Raises PreconditionFailed if deprecated,
        and InvalidArgument for an input that the version would refuse, unless the run already exists."""
        key = TypeKey(request.namespace, request.workflow_type)
        try:
            version = known.get((key, request.version))
            if version is None:
                version = known[key, request.version] = await self._versions.pin(key, request.version)
        except PreconditionFailed:
            if not request.workflow_id or request.on_conflict == "replace":
                raise
            record = await self._store.get_run(request.namespace, workflow_id=request.workflow_id)
            if record is None or record.status.ended:
                raise
            return request
        checks_known = self._schemas.known(key, version)
        if checks_known is None:
            checks_known = await self._schemas.load(key, version)
        if checks_known and (misfit := input_misfit(checks_known, request.input)) is not None:
            await self._refuse_input(request, version, misfit)
        return request if version == request.version else msgspec.structs.replace(request, version=version)

    async def _refuse_input(self, request: StartRequest, version: str, misfit: Misfit) -> None:
        """Raises InvalidArgument, unless the start only returns an existing run."""
        if request.workflow_id and request.on_conflict != "replace":
            record = await self._store.get_run(request.namespace, workflow_id=request.workflow_id)
            if record is not None and not record.status.ended:
                return
        raise input_refusal(request.workflow_type, version, misfit)

    def _command(self, request: StartRequest, now: Timestamp, signal: SendSignal | None = None) -> StartRun:
        run_id = self._ids.run_id(now, request.namespace)
        assignment = None
        if start_time(request, now) is None:
            key = TypeKey(request.namespace, request.workflow_type)
            assignment = self._matcher.assign(key, request.version, run_id)
        return start_run(request, RunKey(request.namespace, run_id), now, assignment=assignment, signal=signal)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def get(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord:
        """By run id, or the latest run with that workflow_id. Raises NotFound, InvalidArgument."""
        checks.name(namespace, "namespace")
        checks.one_of(run_id, workflow_id)
        record = await self._store.get_run(namespace, run_id=run_id, workflow_id=workflow_id)
        if record is None:
            raise checks.no_run(run_id or workflow_id)
        return record

    async def list(
        self, namespace: str, where: RunFilter, page: PageAsk, *, order: RunOrder | None = None
    ) -> Page[RunRecord]:
        """The latest first, without payloads: by end if requested or implied by the filter, else by creation. A search
        by an id prefix has only one page. Raises InvalidArgument."""
        checks.name(namespace, "namespace")
        order = checks.run_order(where, order, page.token)
        bound_to = msgspec.json.encode(("runs", namespace, where, order), order="deterministic").decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_runs(namespace, where, cursor, page_size(page), order=order)
        if where.id_prefix:
            listed = Page(rows.rows, has_more=rows.has_more)
        else:
            listed = page_of(rows, cursor, bound_to, place_by(order))
        if not page.count:
            return listed
        total = await self._store.count_runs(namespace, where, limits.COUNT_CAP)
        return msgspec.structs.replace(listed, total=total, total_is_capped=total >= limits.COUNT_CAP)

    async def count(self, namespace: str, where: RunFilter) -> tuple[int, bool]:
        """The number of runs, and whether there may be more: counting stops at a cap."""
        checks.name(namespace, "namespace")
        checks.run_filter(where)
        total = await self._store.count_runs(namespace, where, limits.COUNT_CAP)
        return total, total >= limits.COUNT_CAP

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def wait(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", timeout_ms: int
    ) -> RunEnd | RunStatus:
        """How the run ended, or its status if it has not ended within the timeout. Raises NotFound, InvalidArgument."""
        checks.wait_ms(timeout_ms, "timeout")
        run = await self._key(namespace, run_id, workflow_id)
        return await self._waits.wait(run, timeout_ms)

    def open_waits(self, namespace: str, deliver: Deliver) -> Waits:
        """Many waits of one client; `deliver(ends, not_found_ids)` is called, but never from within `add`."""
        checks.name(namespace, "namespace")
        return self._waits.open(namespace, deliver)

    async def endings(self, namespace: str, run_ids: Sequence[str]) -> Sequence[RunEnd | RunStatus | None]:
        """The ends or statuses of the first of these runs, as many as fit in a page; None for an unknown run."""
        return await self._store.endings_of([RunKey(namespace, run_id) for run_id in run_ids])

    async def _key(self, namespace: str, run_id: str, workflow_id: str) -> RunKey:
        if run_id:
            checks.name(namespace, "namespace")
            checks.one_of(run_id, workflow_id)
            return RunKey(namespace, run_id)
        return (await self.get(namespace, workflow_id=workflow_id)).run


def _start_answer(outcome: Outcome, command: StartRun, now: Timestamp) -> Started | Existing | KagziError:
    if isinstance(outcome, Started):
        return outcome
    if isinstance(outcome, Existing):
        if outcome.run_id != command.run.run_id:
            return outcome
        # Our own start, written before and repeated after an outage: the caller sees it as created now.
        return Started(outcome.run_id, outcome.workflow_id, outcome.status, now)
    return refusal_of(outcome, command) or InternalError(f"unexpected outcome of a start: {type(outcome).__name__}")


def _answered(answer: Started | Existing | KagziError | None) -> Started | Existing | KagziError:
    assert answer is not None
    return answer

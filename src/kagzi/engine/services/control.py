"""Operations of clients on runs: signal, replace a signal, cancel, terminate, pause, resume, adopt, wake, retry,
fork."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeVar

import msgspec

from ...core.checks.refused_requests import error_of
from ...core.effects import Effects
from ...core.keys.audit import Action
from ...core.limits import METADATA_ENTRIES, Settings
from ...core.providers import Clock, Ids
from ...core.records import Payload, RunKey
from ...core.run.commands import SendSignal, SignalReplacement
from ...core.run.outcomes import Existing, Refused, Started
from ...core.run.wakes import Wake, Woken
from ...core.states import ENDED, RunStatus
from ...core.times import US_PER_MS
from ...store.protocol import Fork, RequestVerb, Signalled, SignalReplaced, Store
from ..checks import requests as checks
from ..checks.schemas import Schemas
from ..commit.dispatcher import Dispatcher
from .keys.audit import Audit

Answer = TypeVar("Answer")
Done: TypeAlias = Awaitable[tuple[Answer | Refused | None, Effects]]


class Control:
    """All methods raise NotFound for an unknown run and InvalidArgument for invalid input; all can be repeated."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        settings: Settings,
        dispatcher: Dispatcher,
        schemas: Schemas,
        audit: Audit,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._payload_bytes = settings.payload_bytes
        self._cleanup_us = settings.cleanup_ms * US_PER_MS
        self._dispatcher = dispatcher
        self._schemas = schemas
        self._audit = audit

    async def signal(self, namespace: str, *, run_id: str = "", workflow_id: str = "", signal: SendSignal) -> Signalled:
        """By workflow_id: the open run, else the latest. Raises PreconditionFailed if the run has ended,
        ResourceExhausted if it has too many unconsumed signals, InvalidArgument for a value that its workers would
        refuse."""
        checks.name(namespace, "namespace")
        checks.one_of(run_id, workflow_id)
        checks.signal(signal, self._payload_bytes)
        if not signal.request_id:
            signal = msgspec.structs.replace(signal, request_id=self._ids.token())
        check = self._schemas.signal_check(namespace, signal.name, signal.payload)
        send = partial(
            self._store.signal_run, namespace, run_id=run_id, workflow_id=workflow_id, signal=signal, check=check
        )
        signalled, effects = await send(now=self._clock.now())
        while await check.load_missing():
            signalled, effects = await send(now=self._clock.now())
        return self._done(signalled, effects, run_id or workflow_id)

    async def replace_signal(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", change: SignalReplacement
    ) -> SignalReplaced:
        """Replaces or drops a signal value that no code has received. If the run was paused because of the value, it
        continues. Raises PreconditionFailed if there is no such value, or the run has ended; AlreadyExists if the
        request id was used for something else."""
        checks.name(namespace, "namespace")
        checks.one_of(run_id, workflow_id)
        checks.signal(change, self._payload_bytes)
        if not change.request_id:
            change = msgspec.structs.replace(change, request_id=self._ids.token())
        check = self._schemas.signal_check(namespace, change.name, change.payload)
        replace = partial(
            self._store.replace_signal, namespace, run_id=run_id, workflow_id=workflow_id, change=change, check=check
        )
        replaced, effects = await replace(now=self._clock.now())
        while await check.load_missing():
            replaced, effects = await replace(now=self._clock.now())
        return self._done(replaced, effects, run_id or workflow_id)

    async def cancel(self, namespace: str, *, run_id: str = "", workflow_id: str = "", reason: str = "") -> RunStatus:
        """Asks the run to stop; returns its status."""
        checks.reason(reason)

        def cancel(run: RunKey) -> Done[RunStatus]:
            now = self._clock.now()
            return self._store.cancel_run(run, reason, now, now + self._cleanup_us)

        return await self._on_last(namespace, run_id, workflow_id, cancel)

    async def terminate(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", reason: str = ""
    ) -> RunStatus:
        """CANCELLED at once, without cleanup, even if a worker holds it."""
        checks.reason(reason)
        return await self._on_last(
            namespace, run_id, workflow_id, lambda run: self._store.terminate_run(run, reason, self._clock.now())
        )

    async def pause(self, namespace: str, *, run_id: str = "", workflow_id: str = "", reason: str = "") -> RunStatus:
        """PAUSED, or RUNNING until its worker has finished the steps in flight."""
        checks.reason(reason)
        return await self._on_last(
            namespace, run_id, workflow_id, lambda run: self._store.pause_run(run, reason, self._clock.now())
        )

    async def resume(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunStatus:
        return await self._on_last(
            namespace, run_id, workflow_id, lambda run: self._store.resume_run(run, self._clock.now())
        )

    async def adopt(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", build_id: str = "", reason: str = ""
    ) -> RunStatus:
        """From now on only workers of this build may claim the run, until it is adopted again or their code does not
        match its history either; a paused run is resumed. An empty build: every worker may claim it, and a paused run
        stays paused. Raises PreconditionFailed if the run has ended, or is being executed."""
        checks.optional_name(build_id, "build_id")
        checks.reason(reason)
        run = await self._key(namespace, run_id, workflow_id)
        details = {"build_id": build_id or None} | ({"reason": reason} if reason else {})
        entry = self._audit.entry(Action.RUN_ADOPT, namespace, run.run_id, details)
        status, effects = await self._store.adopt_run(run, build_id, self._clock.now(), audit=entry)
        self._dispatcher.announce(effects.pending)
        return self._done(status, effects, run.run_id)

    async def wake(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", step_id: str = "", request_id: str = ""
    ) -> Woken:
        """Makes a retry, a sleep or a delayed start due now. Without `step_id`: the run itself, if it waits to begin or
        to be retried, else its only step that waits for a time. If it no longer waits, nothing changes: `Woken.woken`
        is False. Raises PreconditionFailed, AlreadyExists."""
        checks.optional_name(step_id, "step_id")
        checks.optional_name(request_id, "request_id")
        wake = Wake(step_id, request_id or self._ids.token())
        return await self._on_last(
            namespace,
            run_id,
            workflow_id,
            lambda run: self._store.wake_run(run, wake, self._clock.now()),
            request=("wake", wake.request_id),
        )

    async def retry(
        self,
        namespace: str,
        *,
        run_id: str = "",
        workflow_id: str = "",
        from_step: str = "",
        request_id: str = "",
    ) -> RunStatus:
        """Reopens a failed run at the step that failed, or at `from_step`. Raises PreconditionFailed, AlreadyExists."""
        checks.optional_name(from_step, "from_step")
        checks.optional_name(request_id, "request_id")
        request_id = request_id or self._ids.token()
        return await self._on_last(
            namespace,
            run_id,
            workflow_id,
            lambda run: self._store.retry_run(run, from_step, request_id, self._clock.now()),
            request=("retry", request_id),
        )

    async def fork(
        self,
        namespace: str,
        run_id: str,
        *,
        from_step: str = "",
        outputs: Mapping[str, Payload] | None = None,
        version: str = "",
        workflow_id: str = "",
        request_id: str = "",
    ) -> Started | Existing:
        """Creates a run with the results that this one had before `from_step` (empty: all results)."""
        source = checks.key(namespace, run_id)
        for field, value in (
            ("from_step", from_step),
            ("version", version),
            ("workflow_id", workflow_id),
            ("request_id", request_id),
        ):
            checks.optional_name(value, field)
        now = self._clock.now()
        new_run_id = self._ids.run_id(now, namespace)
        fork = Fork(
            source=source,
            from_step=from_step,
            new_run_id=new_run_id,
            workflow_id=workflow_id or new_run_id,
            request_id=request_id or new_run_id,
            version=version or None,
            outputs=self._outputs(outputs or {}),
        )
        forked, effects = await self._store.fork_run(fork, now)
        if isinstance(forked, Started):  # a separate check: mypy treats a union of structs as a Struct
            for key in effects.pending:
                self._dispatcher.measurements.started(key.namespace, key.workflow_type, "fork")
            return self._done(forked, effects, run_id)
        return self._done(forked, effects, run_id)

    def _outputs(self, outputs: Mapping[str, Payload]) -> Mapping[str, Payload]:
        if len(outputs) > METADATA_ENTRIES:
            count = f"{len(outputs)} entries"
            raise checks.over_limit("outputs", count, "entries", METADATA_ENTRIES, "Replace fewer.")
        for step_id, output in outputs.items():
            checks.name(step_id, "outputs key")
            checks.payload(output, f"outputs[{step_id}]", self._payload_bytes)
        return outputs

    def _done(self, outcome: Answer | Refused | None, effects: Effects, run: str) -> Answer:
        """Dispatches the effects and returns the outcome. Raises NotFound, and the refusals of the store."""
        self._dispatcher.dispatch(effects)
        if outcome is None:
            raise checks.no_run(run)
        if isinstance(outcome, Refused):
            raise error_of(outcome.error)
        return outcome

    async def _on_last(
        self,
        namespace: str,
        run_id: str,
        workflow_id: str,
        act: "Callable[[RunKey], Done[Answer]]",
        *,
        request: tuple[RequestVerb, str] | None = None,
    ) -> Answer:
        """Acts on the run. A run named by its workflow id may continue as new before the action reaches it: then its
        successor is meant. A repeated `request` applies to the run on which it was first carried out."""
        run = await self._key(namespace, run_id, workflow_id)
        while True:
            if request is not None and not run_id:
                # No request is carried out on runs that ended before `run` was read, so this need not be in the same
                # transaction.
                earlier = await self._store.ended_run_of_request(namespace, workflow_id, *request)
                if earlier is not None:
                    return self._done(*await act(earlier), earlier.run_id)
            outcome, effects = await act(run)
            if run_id or not (isinstance(outcome, Refused) or outcome in ENDED):
                return self._done(outcome, effects, run.run_id)
            record = await self._store.get_run(namespace, run_id=run.run_id)
            if record is None or record.continued_as is None:
                return self._done(outcome, effects, run.run_id)
            self._dispatcher.dispatch(effects)
            run = RunKey(namespace, record.continued_as)

    async def _key(self, namespace: str, run_id: str, workflow_id: str) -> RunKey:
        checks.name(namespace, "namespace")
        checks.one_of(run_id, workflow_id)
        if run_id:
            return RunKey(namespace, run_id)
        record = await self._store.get_run(namespace, workflow_id=workflow_id)
        if record is None:
            raise checks.no_run(workflow_id)
        return record.run

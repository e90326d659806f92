"""Explains why no worker has claimed a run."""

from collections.abc import Sequence

from ....core.providers import Clock
from ....core.records import Explanation, RunRecord, Served, WorkerRecord
from ....core.states import WorkerStatus
from ....core.text.commands import quoted
from ....core.workflow_types.versions import best_first
from ....store.protocol import Store, TypeKey
from ...matching.liveness import Liveness
from ...matching.sessions import Sessions
from ..served import ServedTypes
from .limit_reasons import limited_by
from .words import count_words, time_words

UNSERVED = frozenset({"no_worker", "no_worker_for_version", "no_worker_for_build"})
_WORKERS_SEEN = 1_000
_WORKERS_NAMED = 5
_BUILDS_NAMED = 5


class PendingExplanations:
    def __init__(
        self, store: Store, *, clock: Clock, liveness: Liveness, served: ServedTypes, sessions: Sessions
    ) -> None:
        self._store = store
        self._clock = clock
        self._liveness = liveness
        self._served = served
        self._sessions = sessions

    async def explain(self, run: RunRecord) -> Explanation:
        limit = await self._limit_waits(run)
        if limit is not None and limit.reason == "type_paused":
            return limit
        workers = await self._workers(run)
        what = _served(run)
        if not workers:
            return await self._no_worker(run)
        fitting = [worker for worker in workers if _serves(worker, run)]
        if not fitting:
            versions = best_first(served.version for worker in workers for served in _of_type(worker, run))
            return Explanation(
                sentence=f"It waits for a worker with version {run.version} of {run.workflow_type}: those connected "
                f"serve {', '.join(versions)}.",
                reason="no_worker_for_version",
                facts={"version": run.version or "", "versions_served": ", ".join(versions)},
                remedy=f"Start a worker that registers {what}. If it is gone permanently, continue the run "
                f"with another version: kagzi fork {quoted(run.run.run_id)} --version {quoted(versions[0])}; "
                "and make new runs use that version: "
                f"kagzi versions set-default {quoted(run.workflow_type)} {quoted(versions[0])}",
            )
        if run.pinned_build is not None:
            others = fitting
            fitting = [worker for worker in others if worker.build_id == run.pinned_build]
            if not fitting:
                return _no_build(run, run.pinned_build, others)
        active = [worker for worker in fitting if worker.status is WorkerStatus.ONLINE]
        if not active:
            return Explanation(
                sentence=f"It waits for a worker: the {count_words(len(fitting), 'worker')} that serve "
                f"{what} are draining.",
                reason="workers_draining",
                facts=_named(fitting),
                remedy=f"Start a worker for {run.workflow_type}.",
            )
        return limit or self._slots(run, active)

    async def _no_worker(self, run: RunRecord) -> Explanation:
        similar = await self._served.similar(TypeKey(run.run.namespace, run.workflow_type))
        hint = f" Did you mean {similar!r}?" if similar else ""
        return Explanation(
            sentence=f"It waits for a worker: none is connected that serves {run.workflow_type}.{hint}",
            reason="no_worker",
            facts={"similar_workflow": similar} if similar else {},
            remedy=f"Start a worker for {run.workflow_type} in namespace {run.run.namespace}.",
        )

    def _slots(self, run: RunRecord, active: Sequence[WorkerRecord]) -> Explanation:
        slots = sum(worker.max_concurrent for worker in active)
        busy = sum(min(self._in_use(worker), worker.max_concurrent) for worker in active)
        facts = {**_named(active), "slots": str(slots), "slots_in_use": str(busy)}
        cancel = " to clean up, because it is being cancelled" if run.cancel_requested else ""
        serving = f"{count_words(len(active), 'worker')} serving {_served(run)} {'has' if len(active) == 1 else 'have'}"
        if busy < slots:
            last_heartbeat_at = max(worker.last_heartbeat_at for worker in active)
            return Explanation(
                sentence=f"It is about to be claimed{cancel}: {serving} {slots - busy} of {slots} slots free.",
                reason="about_to_be_taken",
                facts={**facts, "last_heartbeat_at": time_words(last_heartbeat_at)},
                remedy="It will be claimed in a moment. If not, those workers may be gone: the last heartbeat was at "
                f"{time_words(last_heartbeat_at)}.",
            )
        return Explanation(
            sentence=f"It waits for a free slot{cancel}: {serving} {busy} of {slots} slots in use.",
            reason="waiting_for_slot",
            facts=facts,
            remedy="It starts as soon as a slot is free. Add workers, or raise max_concurrent.",
        )

    def _in_use(self, worker: WorkerRecord) -> int:
        """Current for a worker connected here; for others as of the last heartbeat, which may be seconds old."""
        session = self._sessions.get(worker.namespace, worker.worker_id)
        return worker.active_count if session is None else len(session.leased)

    async def _limit_waits(self, run: RunRecord) -> Explanation | None:
        """Limits of its type or its key."""
        key = run.concurrency_key
        pressure = await self._store.type_pressure(run.run.namespace, run.workflow_type, key)
        begun = run.started_at is not None
        limit = pressure and limited_by(pressure, run.workflow_type, key, self._clock.now(), begun=begun)
        if not limit:
            return None
        facts = {"key": key, "held_back_by": limit.reason}
        return Explanation(
            sentence=f"It waits: {limit.sentence}.", reason=limit.reason, facts=facts, remedy=limit.remedy
        )

    async def _workers(self, run: RunRecord) -> list[WorkerRecord]:
        """Workers that serve the type and have reported recently."""
        rows = await self._store.list_workers(
            run.run.namespace,
            workflow_type=run.workflow_type,
            status=None,
            cursor=None,
            limit=_WORKERS_SEEN,
            alive_since=self._liveness.alive_since(self._clock.now()),
        )
        return [worker for worker in rows.rows if worker.status is not WorkerStatus.OFFLINE]


def _of_type(worker: WorkerRecord, run: RunRecord) -> list[Served]:
    return [served for served in worker.served if served.workflow_type == run.workflow_type]


def _serves(worker: WorkerRecord, run: RunRecord) -> bool:
    return run.version is None or any(
        served.workflow_type == run.workflow_type and served.version == run.version for served in worker.served
    )


def _served(run: RunRecord) -> str:
    served = run.workflow_type if run.version is None else f"{run.workflow_type} version {run.version}"
    return served if run.pinned_build is None else f"{served} of build {run.pinned_build}"


def _no_build(run: RunRecord, build_id: str, others: Sequence[WorkerRecord]) -> Explanation:
    builds = sorted({worker.build_id or "(none)" for worker in others})
    return Explanation(
        sentence=f"It waits for a worker of build {build_id}, to which it was adopted: those connected are of "
        f"{'build' if len(builds) == 1 else 'builds'} {', '.join(builds[:_BUILDS_NAMED])}.",
        reason="no_worker_for_build",
        facts={"pinned_build": build_id, "builds_connected": ", ".join(builds[:_BUILDS_NAMED])},
        remedy=f"Start a worker with the code that it was adopted for, or adopt it for other code: kagzi adopt "
        f"{quoted(run.run.run_id)} --code FILE. To let every worker take it again: "
        f"kagzi adopt {quoted(run.run.run_id)} --any-build",
    )


def _named(workers: Sequence[WorkerRecord]) -> dict[str, str]:
    return {"workers": ", ".join(worker.worker_id for worker in workers[:_WORKERS_NAMED])}

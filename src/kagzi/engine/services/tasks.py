"""Unary calls for workers: the same commands as in a session, one per call."""

import asyncio
from collections.abc import Sequence

from ...core import limits
from ...core.errors import InvalidArgument, PreconditionFailed, ServerUnavailable, not_found
from ...core.pages.sizes import task_bytes
from ...core.records import ClaimedRun, HistoryPage, Lease, RunKey, RunLease, WorkerRecord
from ...core.run.commands import ClosingCommand, StepCommand
from ...core.run.outcomes import Outcome
from ...core.states import WorkerStatus
from ...store.protocol import Store
from ..checks import requests as checks
from ..checks.operations import Operations
from ..checks.refusals import lease_lost, refusal_of
from ..commit.journal import Journal
from ..matching.lease_registry import LeaseRegistry
from ..matching.lease_times import ReleaseQueue
from ..matching.matcher import Matcher
from ..matching.slots import PollClaimant
from .pinning import Pinning, checked_and_pinned
from .versions import versions_by_type
from .workers import Workers

_SETTLE_S = 5.0  # how much longer a poll waits for a run that is being claimed


class Tasks:
    def __init__(
        self,
        store: Store,
        *,
        journal: Journal,
        matcher: Matcher,
        registry: LeaseRegistry,
        releases: ReleaseQueue,
        workers: Workers,
        operations: Operations,
        pinning: Pinning,
    ) -> None:
        self._store = store
        self._journal = journal
        self._matcher = matcher
        self._registry = registry
        self._releases = releases
        self._workers = workers
        self._operations = operations
        self._pinning = pinning
        self._polls: set[PollClaimant] = set()
        self._stopped = asyncio.Event()

    async def poll(
        self, namespace: str, worker_id: str, workflow_types: Sequence[str], *, max_tasks: int, wait_ms: int
    ) -> Sequence[ClaimedRun]:
        """Runs for a registered worker, or none if there are none within the wait.

        Raises InvalidArgument, NotFound (the worker is unknown), PreconditionFailed (it has left), Unavailable.
        """
        checks.name(namespace, "namespace")
        checks.name(worker_id, "worker_id")
        checks.within(max_tasks, 1, limits.POLL_TASKS, "max_tasks")
        checks.wait_ms(wait_ms, "wait")
        worker = await self._workers.known(namespace, worker_id)
        if worker is None:
            raise not_found("worker", worker_id)
        if worker.status is WorkerStatus.OFFLINE:
            raise PreconditionFailed(f"worker {worker_id} has left. Register it again.", field="worker_id")
        versions = _served(worker, workflow_types)
        if self._stopped.is_set():
            raise ServerUnavailable("the server is stopping. Poll again, or use another server.")
        if worker.status is WorkerStatus.DRAINING:
            return await self._wait_in_vain(wait_ms)
        claimant = PollClaimant(namespace, worker_id, versions, max_tasks, build_id=worker.build_id)
        return await self._take(claimant, wait_ms)

    async def _take(self, claimant: PollClaimant, wait_ms: int) -> Sequence[ClaimedRun]:
        self._polls.add(claimant)
        self._matcher.add(claimant)
        round_done = self._matcher.next_round()
        claimed: Sequence[ClaimedRun] = ()
        try:
            claimed = await claimant.delivery(round_done, wait_ms / 1_000, _SETTLE_S)
        finally:
            self._matcher.remove(claimant)
            self._polls.discard(claimant)
            unclaimed = claimant.close()
            if unclaimed and not claimed:  # the caller disconnected when they were delivered
                self._releases.add(RunLease(run.run, run.lease) for run in unclaimed)
        claimed, rest = fitting(claimed)
        if rest:
            self._releases.add(RunLease(run.run, run.lease) for run in rest)
        for run in claimed:
            self._registry.add_unary(RunLease(run.run, run.lease), run.workflow_type, run.started_at)
        return claimed

    async def _wait_in_vain(self, wait_ms: int) -> Sequence[ClaimedRun]:
        """A draining worker gets nothing; responding at once would make it poll in a tight loop."""
        try:
            async with asyncio.timeout(wait_ms / 1_000):
                await self._stopped.wait()
        except TimeoutError:
            pass
        return ()

    async def submit(self, command: StepCommand | ClosingCommand) -> Outcome:
        """What was recorded. Every refusal is raised: LeaseLost, NotFound, PreconditionFailed, InvalidArgument ..."""
        checks.key(command.run.namespace, command.run.run_id)
        outcome = await self._journal.submit(await checked_and_pinned(self._operations, self._pinning, command))
        refusal = refusal_of(outcome, command)
        if refusal is not None:
            raise refusal
        return outcome

    async def history(self, run: RunKey, lease: Lease, after: int, known_seq: int = 0) -> HistoryPage:
        """The steps begun after `after`; see Store.history. Raises LeaseLost."""
        checks.key(run.namespace, run.run_id)
        checks.within(after, 0, checks.INT64_END - 1, "after")
        checks.within(known_seq, 0, checks.INT64_END - 1, "known_seq")
        checks.within(lease.counter, 0, checks.INT64_END - 1, "lease.counter")
        checks.within(lease.nonce, 0, checks.INT64_END - 1, "lease.nonce")
        page = await self._store.history(run, lease, after, known_seq)
        if page is None:
            raise lease_lost(run)
        return page

    def stop(self) -> None:
        """Ends waiting polls without runs."""
        self._stopped.set()
        for claimant in self._polls:
            claimant.stop()


def fitting(claimed: Sequence[ClaimedRun]) -> tuple[Sequence[ClaimedRun], Sequence[ClaimedRun]]:
    """The runs that fit into one response, at least one; and the rest."""
    size = 0
    for place, run in enumerate(claimed):
        size += task_bytes(run)
        if place and size > limits.MESSAGE_SOFT_BYTES:
            return claimed[:place], claimed[place:]
    return claimed, ()


def _served(worker: WorkerRecord, workflow_types: Sequence[str]) -> dict[str, tuple[str, ...]]:
    versions = versions_by_type(worker.served)
    if not workflow_types:
        return versions
    for workflow_type in workflow_types:
        if workflow_type not in versions:
            raise InvalidArgument(
                f"workflow type {workflow_type!r} was not registered by worker {worker.worker_id}. Register it first.",
                field="workflow_types",
            )
    return {workflow_type: versions[workflow_type] for workflow_type in workflow_types}

"""Fetches what arrives for a run while a worker holds it: signals, ends of children, waits whose time has come.

The run fetches when the server reports results, or when it has reason to expect some. Fetched results are delivered in
the order of their seqs, like any result. The same request confirms a lease that may have ended.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial

from ...core import limits
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from .claim import Claim
from .delivery import Delivery
from .idle.tasks import RunTasks
from .ledger import COMPLETED, SIGNAL, Ledger
from .ports import Answer, OnAnswer, RunControl
from .state import RunState
from .timed_waits import TimedWaits

logger = logging.getLogger("kagzi.worker")

_READ_AGAIN = ""  # in `Delivery.restarting`, among ids of steps
_NAMED_WAITS_CHARS = limits.MESSAGE_SOFT_BYTES // 4  # fits into a message in any script

OnResults = Callable[[list[pb.HistoryStep]], None]
OnRefusal = Callable[[common.ErrorDetail], None]


class IncomingResults:
    """The incoming results of one run."""

    __slots__ = (
        "_claim", "_correcting", "_delivery", "_fetch_again", "_fetching", "_fetching_pages", "_ledger", "_pages",
        "_request_seq", "_run", "_synced_seq", "_taken_back", "_tasks", "_unsure_of_lease", "_waits",
    )  # fmt: skip

    def __init__(  # noqa: PLR0917  the parts of a run
        self,
        run: RunControl,
        claim: Claim,
        tasks: RunTasks,
        ledger: Ledger,
        waits: TimedWaits,
        delivery: Delivery,
        synced_seq: int,
    ) -> None:
        self._run = run
        self._claim = claim
        self._tasks = tasks
        self._ledger = ledger
        self._waits = waits
        self._delivery = delivery
        self._taken_back: set[str] = set()  # names of signals whose undelivered results are to be read again
        self._correcting = False  # they are being read
        self._synced_seq = synced_seq  # records of others are known up to this seq
        self._request_seq = 0  # the last acknowledged seq when results were requested
        self._fetching = False
        self._fetch_again = False
        self._fetching_pages = False
        self._pages: list[pb.HistoryStep] = []  # of an answer that spans several messages
        self._unsure_of_lease: list[asyncio.Future[None]] = []

    def synced(self, seq: int) -> None:
        self._synced_seq = max(self._synced_seq, seq)

    def known_seq(self) -> int:
        """All results up to this seq are known here.

        Results that others record for a wait get their seq when they arrive, perhaps before the answer to an operation
        in flight: then a lower seq arrives later than a higher one. So while such waits are open, only the seq of the
        last fetch counts.
        """
        known = max(self._ledger.known_seq, self._claim.task.last_seq)
        first = self._waits.first_external_seq()
        return known if first is None else min(known, max(self._synced_seq, first))

    def fetch_foreign(self) -> bool:
        """Whether a result may exist that must be delivered before those that are here; then it is fetched.

        A signal or the end of a child has a lower seq than a result of this run that was recorded after it. But that
        result is acknowledged at once, while the worker is only notified of the other one. Replay delivers them in the
        order of their seqs. So nothing is delivered past a seq that this worker did not record itself before the server
        was asked about it.
        """
        foreign = self._claim.port.foreign_seq
        if foreign <= self._synced_seq:
            return False
        first = self._waits.first_external_seq()
        if first is None or foreign <= first:
            return False
        self.fetch()
        return True

    # --- the operations -----------------------------------------------------------------------------------------------

    def park(self, on_answer: OnAnswer) -> None:
        """Ask whether the run may leave the worker. If something has arrived meanwhile, the answer contains it."""
        self._request_seq = self._claim.port.last_seq
        self._fill(self._claim.send(on_answer).park, self._waits.by_id)

    def fetch(self) -> None:
        """Ask for results for the run's waits."""
        if self._fetching or self._fetching_pages:
            self._fetch_again = True
        elif self._run.state is RunState.RUNNING:  # the answer to a park in flight brings the same
            self._fetching = True
            self._request_seq = self._claim.port.last_seq
            fetch = self._send_fetch(self._answered)
            if self._taken_back:
                seqs = [wait.seq - 1 for wait in self._ledger.waits_for(self._taken_back) if wait.seq]
                fetch.known_seq = min([fetch.known_seq, *seqs])
                self._taken_back.clear()
                self._correcting = True

    def read_again(self, names: Collection[str]) -> None:
        """Signals of these names were taken back: other waits may have got them. Nothing is delivered until the results
        that have not been delivered are known as they are now."""
        if self._ledger.waits_for(names):
            self._taken_back.update(names)
            self._delivery.restarting.add(_READ_AGAIN)
            self.fetch()

    def _send_fetch(self, on_answer: OnAnswer) -> pb.FetchResultsOperation:
        fetch = self._claim.send(on_answer).fetch_results
        # Includes waits that are about to begin: a wake may overtake the answer that says how long to wait.
        self._fill(fetch, {**self._waits.by_id, **self._ledger.open})
        return fetch

    def _fill(self, operation: pb.ParkOperation | pb.FetchResultsOperation, waits: Collection[str]) -> None:
        if sum(map(len, waits)) <= _NAMED_WAITS_CHARS:
            operation.waits.extend(waits)
        # Naming none means all waits, including abandoned ones: the run may be woken for nothing.
        operation.known_seq = self.known_seq()

    def fetch_if_due(self) -> None:
        """Fetch again if the server reported more during the fetch."""
        if self._fetch_again:
            self._fetch_again = False
            self.fetch()
        self._tasks.idle.start()

    def _answered(self, answer: Answer) -> None:
        self._fetching = False
        if not self._run.live or answer.detail is None:
            return
        refusal = answer.refusal
        if refusal is not None:
            self._refused(refusal)
        else:
            self._waits.fire_retries(answer.detail.fetched.retries)
            self.gather(answer.detail.fetched, self._gathered, self._refused)

    def _gathered(self, results: list[pb.HistoryStep]) -> None:
        if self._correcting:
            self._correcting = False
            for step in results:
                if step.kind == SIGNAL and step.status == COMPLETED:
                    self._waits.correct(step)
            if not self._taken_back:
                self._delivery.restarting.discard(_READ_AGAIN)
        self.take_in(results)
        self.fetch_if_due()

    def _refused(self, refusal: common.ErrorDetail) -> None:
        if not self._run.taken_away(refusal):
            logger.error("run %s could not fetch its new results: %s", self._claim.task.run_id, refusal.message)
            self._run.release("its new results could not be fetched")

    def gather(self, answer: pb.NotParked | pb.Fetched, then: OnResults, refused: OnRefusal) -> None:
        """Call `then` with all results once all pages of this answer have arrived. The run sees them together, as if
        they had come in one message: otherwise results of its own steps could overtake them."""
        self._pages.extend(answer.results)
        if answer.more and answer.results:
            self._fetching_pages = True
            fetch = self._send_fetch(partial(self._next_page, then, refused))
            fetch.known_seq = answer.results[-1].seq
            return
        self._fetching_pages = False
        results, self._pages, request_seq = self._pages, [], self._request_seq
        then(results)
        self.synced(request_seq)

    def _next_page(self, then: OnResults, refused: OnRefusal, answer: Answer) -> None:
        refusal = answer.refusal
        if self._run.live and answer.detail is not None and refusal is None:
            self.gather(answer.detail.fetched, then, refused)
            return
        self._fetching_pages = False
        self._pages = []
        if self._run.live and refusal is not None:
            refused(refusal)

    def take_in(self, results: Iterable[pb.HistoryStep]) -> bool:
        """Take results that arrived while the run waited, or that it knew. Returns False if none was new."""
        seen = self._synced_seq
        learnt = False
        for step in results:
            if step.seq > self._synced_seq:
                self._synced_seq = step.seq
                learnt = True
            if step.step_id in self._waits.by_id:
                learnt |= self._waits.settle(step)
            elif step.seq > seen:
                self._waits.settle_early(step)
        return learnt

    # --- the lease ----------------------------------------------------------------------------------------------------

    async def confirm_lease(self) -> None:
        """Returns when the server has confirmed that this worker still holds the lease. Otherwise the run is
        abandoned."""
        claim = self._claim
        future: asyncio.Future[None] = claim.loop.create_future()
        self._unsure_of_lease.append(future)
        if len(self._unsure_of_lease) == 1:
            run_id = claim.task.run_id
            logger.warning(
                "run %s: its lease may have expired, so nothing begins before the server confirms it", run_id
            )
            self._send_fetch(partial(self._lease_answered, claim.port.ask_about_lease()))
        await self._run.wait(future)

    def _lease_answered(self, confirmed: Callable[[], None], answer: Answer) -> None:
        unsure, self._unsure_of_lease = self._unsure_of_lease, []
        if not self._run.live or answer.detail is None:
            return
        refusal = answer.refusal
        if refusal is not None:
            if not self._run.taken_away(refusal):
                self._run.release("the server could not confirm the lease")
            return
        confirmed()
        self.take_in(answer.detail.fetched.results)
        for future in unsure:
            if not future.done():
                self._tasks.idle.disturb()
                future.set_result(None)
        self._tasks.idle.start()

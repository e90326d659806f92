"""What comes for a run while a worker holds it: signals, children's ends, waits whose time is up.

The server says that there is something, or the run thinks so; then it asks. What the answer brings is delivered in the order of its
numbers, like any result.
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from ...core import limits
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ..worker.ports import Answer
from .ledger import ABANDONED, CHILD, SIGNAL, SLEEP
from .state import State

if TYPE_CHECKING:
    from .run_execution import Run
    from .timed_waits import TimedWait

logger = logging.getLogger("kagzi.worker")

_WAITS = (SLEEP, SIGNAL, CHILD)
_NAMED_WAITS_CHARS = limits.MESSAGE_SOFT_BYTES // 4  # that fit into a message whatever they are written in


class Arrivals:
    __slots__ = ("_ask_again", "_asked", "_early", "_fetching", "_pages", "_run", "_synced_seq")

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._asked = False
        self._ask_again = False
        self._fetching = False
        self._pages: list[pb.HistoryStep] = []  # of an answer that takes several messages
        self._synced_seq = run.task.last_seq  # what others recorded up to here is known
        self._early: dict[str, pb.HistoryStep] = {}  # came before the code waited for it: it is on its way there

    def synced(self, seq: int) -> None:
        self._synced_seq = max(self._synced_seq, seq)

    def known_seq(self) -> int:
        """Everything up to this number is known here.

        What others record for a wait gets its number when it comes, perhaps before the answer to an operation that is on its way:
        then a lower number arrives later than a higher one. So with such waits open only what was there when asked last counts.
        """
        run = self._run
        known = max(run.ledger.known_seq, run.task.last_seq)
        first = run.waits.first_external_seq()
        return known if first is None else min(known, max(self._synced_seq, first))

    def ask(self) -> None:
        run = self._run
        if self._asked or self._fetching:
            self._ask_again = True
            return
        if run.state is not State.RUNNING:
            return  # a park that is asked for answers the same
        self._asked = True
        run.in_flight += 1
        self.fill(run.port.send(self._answered).park)

    def fill(self, park: pb.ParkOperation, *, stay: bool = True) -> None:
        waits = self._run.waits.by_id
        if sum(map(len, waits)) <= _NAMED_WAITS_CHARS:
            park.waits.extend(
                waits
            )  # naming none means all of them, those given up included: it may be woken for nothing
        park.known_seq = self.known_seq()
        park.stay = stay

    def _answered(self, answer: Answer) -> None:
        run = self._run
        self._asked = False
        run.in_flight -= 1
        if run.state not in (State.RUNNING, State.PARKING) or answer.detail is None:
            return
        kind = answer.detail.WhichOneof("kind")
        if kind == "not_parked":
            self.gather(answer.detail.not_parked, self._gathered, self._refused)
            return
        if kind == "refused":
            self._refused(answer.detail.refused)
        else:
            self.ask_if_due()

    def _gathered(self, results: list[pb.HistoryStep]) -> None:
        self.take_in(results)
        self.ask_if_due()

    def _refused(self, refusal: common.ErrorDetail) -> None:
        if not self._run.taken_away(refusal):
            logger.error("run %s could not ask what has come: %s", self._run.run_id, refusal.message)
        self.ask_if_due()

    def ask_if_due(self) -> None:
        """News that came while the run was asking: it asks again."""
        if self._ask_again:
            self._ask_again = False
            self.ask()
        self._run.quiet.start()

    def gather(
        self,
        answer: pb.NotParked,
        then: Callable[[list[pb.HistoryStep]], None],
        refused: Callable[[common.ErrorDetail], None],
    ) -> None:
        """Call `then` with all results of which this answer is a page, once the others are here. The run sees them together, as if
        they had come in one message: in between, results of its own steps could overtake them."""
        self._pages.extend(answer.results)
        if answer.more and answer.results:
            run = self._run
            run.in_flight += 1
            self._fetching = True
            park = run.port.send(partial(self._next_page, then, refused)).park
            self.fill(park)
            park.known_seq = answer.results[-1].seq
            return
        self._fetching = False
        results, self._pages = self._pages, []
        then(results)

    def _next_page(
        self,
        then: Callable[[list[pb.HistoryStep]], None],
        refused: Callable[[common.ErrorDetail], None],
        answer: Answer,
    ) -> None:
        run = self._run
        run.in_flight -= 1
        kind = None if answer.detail is None else answer.detail.WhichOneof("kind")
        if run.state in (State.RUNNING, State.PARKING) and answer.detail is not None and kind == "not_parked":
            self.gather(answer.detail.not_parked, then, refused)
            return
        self._fetching = False
        self._pages = []
        if run.state in (State.RUNNING, State.PARKING) and answer.detail is not None and kind == "refused":
            refused(answer.detail.refused)

    def take_in(self, results: Iterable[pb.HistoryStep]) -> bool:
        """Results that came while the run waited, and ones it knew. False if nothing was learnt."""
        run = self._run
        seen = self._synced_seq
        learnt = False
        for step in results:
            if step.seq > self._synced_seq:
                self._synced_seq = step.seq
                learnt = True
            wait = run.waits.by_id.get(step.step_id)
            if wait is not None:
                learnt |= self._settle(wait, step)
            elif step.seq > seen and step.status != ABANDONED:
                if step.seq > run.ledger.known_seq:
                    run.ledger.know(step.step_id, step.seq)
                if step.kind in _WAITS:
                    self._early[step.step_id] = step
        return learnt

    def _settle(self, wait: "TimedWait", step: pb.HistoryStep) -> bool:
        if wait.settled or wait.future.done():
            return False
        wait.settled = True
        self._run.ledger.know(step.step_id, step.seq)
        self._run.delivery.push(step.seq, step.at_us, wait.future, step)
        return True

    def settle_early(self, wait: "TimedWait") -> None:
        """To be called for every new wait: what it waits for may be here."""
        step = self._early.pop(wait.step_id, None) if self._early else None
        if step is not None:
            wait.settled = True
            self._run.delivery.push(step.seq, step.at_us, wait.future, step)

"""Random programs that give up waits for signals, under a stream of signals, with a crash at every moment: each signal
is received once and in order, or unread.

KAGZI_TEST_PROGRAMS says how many programs.
"""

import asyncio
import os
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.execution.ledger import WITHDRAWN
from tests.support.signal_programs import NAMES, Program, SignalPlayer, check_received, programs
from tests.support.virtual_loop import run_virtually

from .fake import TIMEOUT_S, FakePort, FakeServer

COUNT = int(os.environ.get("KAGZI_TEST_PROGRAMS", "4"))
pytestmark = pytest.mark.timeout(120 + 2 * COUNT)
SOME = settings(
    max_examples=COUNT,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
MOST_SIGNALS = 8
FOR_EVER_S = 3_600.0
_A_MOMENT_S = 0.001  # a replay comes later than what it repeats: its timers are known to be able to fire


class Performance:
    """One program on the tiny server. `play` it; a crash takes the worker at one moment: at a claim, or just before or
    just after an operation is durable."""

    def __init__(self, program: Program, seed: int, crash_at: int | None) -> None:
        self._random = Random(seed)
        self._crash_at = crash_at
        self._crashed = False
        self._ports: list[FakePort] = []
        self._page = self._random.choice([1, 2, 10_000])
        self.player = SignalPlayer(program)
        options = {"kept_runs_max": self._random.choice([0, 10]), "kept_s": 10_000_000}
        self.server = FakeServer(*self.player.workflows, latency=lambda: self._random.randrange(3), **options)
        self.server.moment = self._moment
        self.root = self.server.start(self.player.root)
        self.moments: list[str] = []
        self.sent = dict.fromkeys(NAMES, 0)
        for _ in range(self._random.choice([0, 0, 2, 4])):
            self._signal()

    def _signal(self) -> None:
        if sum(self.sent.values()) < MOST_SIGNALS and not self.root.status.ended:
            name = self._random.choice(NAMES)
            self.server.signal(self.root, name, self.sent[name])
            self.sent[name] += 1

    def _moment(self, port: FakePort, what: str) -> None:
        number = len(self.moments)
        self.moments.append(what)
        if self._random.random() < 0.15:
            self.server.loop.call_soon(self._signal_to_the_last)
        if number == self._crash_at:
            self._crashed = True
            for each in self._ports:
                each.crashed.set()
            self.server.changes.set()

    def _signal_to_the_last(self) -> None:
        self._follow()
        self._signal()

    def _follow(self) -> None:
        while self.root.continued_as is not None:
            self.root = self.root.continued_as

    async def play(self) -> None:
        try:
            async with asyncio.timeout(FOR_EVER_S):
                while not self.root.status.ended and not self.server.broken:
                    self.server.changes.clear()
                    assert self.root.status is not RunStatus.PAUSED, self.root.problem
                    if self.root.status is RunStatus.PENDING and not self._crashed:
                        port = self.server.claim(self.root, page=self._page)
                        self._ports.append(port)
                        self._moment(port, "claim")
                    if not self._crashed and not self.server.broken:
                        await self._wait()
                    if self._crashed:
                        await self._bury_worker()
                    self._follow()
            assert not self.server.broken, self.server.broken
        except (AssertionError, TimeoutError, RuntimeError) as error:
            error.add_note(f"{self._crash_at}: {self.moments[-12:]}\n{self.player.program}\n{self.root.log}")
            raise
        finally:
            self.server.moment = lambda port, what: None
            await self._empty_worker()

    async def _wait(self) -> None:
        due_at = self.root.due_at if self.root.status is RunStatus.SLEEPING else None
        rest_s = FOR_EVER_S if due_at is None else max(due_at - self.server.now, 0) / 1_000_000
        try:
            async with asyncio.timeout(min(rest_s, 1.0)):
                await self.server.changes.wait()
        except TimeoutError:
            if due_at is not None and due_at <= self.server.now:
                self.root.become(RunStatus.PENDING)
            else:
                self._signal()

    async def _bury_worker(self) -> None:
        self._crashed = False
        self.server.advance(_A_MOMENT_S)
        for port in self._ports:
            if not port.closed.is_set() and port.execution is not None:
                port.execution.abandon("the worker is dead")
        await self._empty_worker()
        self.server.executor = self.server.new_executor()
        self._ports.clear()
        self._follow()
        if self.root.status is RunStatus.RUNNING:
            self.root.become(RunStatus.PENDING)

    async def _empty_worker(self) -> None:
        executor = self.server.executor
        executor.release_all("over")
        async with asyncio.timeout(TIMEOUT_S):
            await executor.drained()
        executor.close()

    def check(self) -> None:
        assert self.root.status is RunStatus.COMPLETED, self.root.error
        try:
            check_received(self.root.result, self.sent, len(self.root.signals))
        except AssertionError as error:
            error.add_note(f"{self._crash_at}: {self.moments[-12:]}\n{self.player.program}\n{self.root.log}")
            raise

    async def check_replay(self) -> None:
        """A new worker comes to the same end. It may begin waits that are given up at once, where the earlier one was
        not as quick: those are cancelled after a pass of the loop."""
        root, output = self.root, self.root.output
        statuses = {step_id: step.status for step_id, step in root.steps.items()}
        self.server.executor = self.server.new_executor()
        self.server.advance(_A_MOMENT_S)
        root.status = RunStatus.PENDING
        root.state.signals = [each for each in root.state.signals if each.step_id]  # the unread ones came too late
        self._crash_at, self.sent = None, dict.fromkeys(NAMES, MOST_SIGNALS)  # no more
        await self.play()
        assert (root.status, root.output) == (RunStatus.COMPLETED, output), root.problem
        for step_id, step in root.steps.items():
            new = StepStatus.COMPLETED if step_id.endswith(WITHDRAWN) else StepStatus.ABANDONED
            assert step.status is statuses.get(step_id, new), (step_id, step)


def perform(program: Program, seed: int, crash_at: int | None = None) -> Performance:
    async def performance() -> Performance:
        playing = Performance(program, seed, crash_at)
        await playing.play()
        playing.check()
        await playing.check_replay()
        return playing

    return run_virtually(performance())


@given(program=programs(timed=True), seed=st.integers(0, 2**32))
@SOME
def test_every_signal_is_received_once_or_unread(program: Program, seed: int) -> None:
    undisturbed = perform(program, seed)
    for moment in range(len(undisturbed.moments)):
        perform(program, seed, crash_at=moment)

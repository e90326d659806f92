"""A program on the tiny server, from its start to its end, with something that happens to it at one moment of its life.

Moments are counted: each claim, and just before and just after each operation is durable. A crash takes the whole
worker with it: every run that it holds, also children; nothing that it sent later is heard, and no answer reaches it.
Another worker goes on.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from kagzi.core.states import RunStatus, StepKind, StepStatus
from tests.support.random_programs import PROCEED, Body, Durations, Player, World

from .fake import TIMEOUT_S, FakePort, FakeRun, FakeServer

DURATIONS = Durations(long="2h")
WENT = "went"
SIGNAL_AFTER_S = 3.0
FOR_EVER_S = 86_400.0 * 300  # less than anybody should wait for what never comes


@dataclass(frozen=True)
class Script:
    """What happens at which moment, if anything."""

    crash_at: int | None = None
    cancel_at: int | None = None


@dataclass
class Ending:
    """What became of the program."""

    status: RunStatus
    result: Any
    moments: list[str]


class Playback:
    """One performance of a program. `play` it, then `check` it, then `check_replay`."""

    def __init__(self, player: Player, seed: int, script: Script) -> None:
        self._random = Random(seed)
        self.world = player.world = World(seed, DURATIONS)
        self.player = player
        self._script = script
        self._page = self._random.choice([1, 2, 3, 10_000])
        options = {"kept_runs_max": self._random.choice([0, 10]), "kept_s": 10_000_000}
        self.server = FakeServer(*self.player.workflows, latency=lambda: self._random.randrange(3), **options)
        self.server.moment = self._moment
        self.root = self.server.start(self.player.root)
        self.moments: list[str] = []
        self.lost: Counter[str] = Counter()  # leases, by run
        self.cancelled_with: set[str] | None = None  # the steps recorded when the cancellation was acknowledged
        self.crashes = 0
        self._crashed = False
        self._ports: list[FakePort] = []
        self.world.before_body = self.before_body

    # --- what happens -------------------------------------------------------------------------------------------------

    def _moment(self, port: FakePort, what: str) -> None:
        number = len(self.moments)
        self.moments.append(f"{what} of {port.run.workflow_type}")
        if what == "after wait_signal":
            self.server.changes.set()
        if number == self._script.cancel_at:
            self.cancelled_with = set(self.root.steps)
            self.server.cancel(self.root)
            for child in self.server.children_of(self.root):
                self.server.loop.call_soon(self.server.cancel, child)  # a little later, as the real one does
        if number == self._script.crash_at:
            self.crashes += 1
            self._crashed = True
            for each in self._ports:
                each.crashed.set()
            self.server.changes.set()

    def before_body(self, body: Body) -> None:
        run = self._run(body.run_id)
        step = run.steps.get(body.step_id)
        assert step is None or not step.seq, f"{body} runs although its result is recorded"
        stopped = run is self.root and self.cancelled_with is not None
        assert not stopped or body.cleans_up, f"{body} begins in a cancelled run"

    def _run(self, run_id: str) -> FakeRun:
        return next(run for run in self.server.runs if run.run_id == run_id)

    # --- the performance ----------------------------------------------------------------------------------------------

    async def play(self) -> Ending:
        try:
            async with asyncio.timeout(FOR_EVER_S):
                while not self.root.status.ended and not self.server.broken:
                    self.server.changes.clear()
                    if self.root.status is RunStatus.PAUSED:
                        self.on_pause()
                    self._claim_all()
                    if not self._crashed and not self.server.broken:
                        await self._wait()
                    if self._crashed:
                        await self.bury_worker()
            assert not self.server.broken, self.server.broken
        except (AssertionError, TimeoutError, RuntimeError) as error:
            error.add_note(f"{self._script}: {self.moments[-12:]}\n{self.player.program}\n{self.root.log}")
            raise
        finally:
            self.server.moment = lambda port, what: None
            await self._empty_worker()
        result = self.root.result if self.root.status is RunStatus.COMPLETED else None
        return Ending(self.root.status, result, list(self.moments))

    def on_pause(self) -> None:
        """The code does not fit the history."""
        raise AssertionError(self.root.problem)

    def _claim_all(self) -> None:
        for run in list(self.server.runs):
            if run.status is RunStatus.PENDING and not self._crashed:
                port = self.server.claim(run, page=self._page)
                self._ports = [each for each in self._ports if not each.closed.is_set()]
                self._ports.append(port)
                self._moment(port, "claim")

    async def _wait(self) -> None:
        """Until a run has changed, or a sleeping one is due. A signal comes when nothing else happens; now and then it
        is early."""
        if self._random.random() < 0.05:
            self.server.signal(self.root, PROCEED.name, WENT)
        dues = [run.due_at for run in self.server.runs if run.status is RunStatus.SLEEPING and run.due_at is not None]
        rest_s = max(min(dues) - self.server.now, 0) / 1_000_000 if dues else FOR_EVER_S
        awaited = any(
            name == PROCEED.name and not self.root.steps[step_id].seq
            for step_id, name in self.root.signal_names.items()
        )
        try:
            async with asyncio.timeout(SIGNAL_AFTER_S if awaited else rest_s):
                await self.server.changes.wait()
        except TimeoutError:
            if awaited:
                self.server.signal(self.root, PROCEED.name, WENT)
            for run in self.server.runs:
                if run.status is RunStatus.SLEEPING and run.due_at is not None and run.due_at <= self.server.now:
                    run.become(RunStatus.PENDING)

    async def bury_worker(self) -> None:
        self._crashed = False
        for port in self._ports:
            if not port.closed.is_set() and port.execution is not None:
                port.execution.abandon("the worker is dead")
        await self._empty_worker()
        self.server.executor = self.server.new_executor()
        self._ports.clear()
        for run in self.server.runs:
            if run.status is RunStatus.RUNNING:
                self.lost[run.run_id] += 1
                run.become(RunStatus.PENDING)

    async def _empty_worker(self) -> None:
        executor = self.server.executor
        executor.release_all("over")
        async with asyncio.timeout(TIMEOUT_S):
            await executor.drained()
        executor.close()

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """P6 and P9: what was executed how often, and what was recorded after a cancellation."""
        for (run_id, step_id), count in Counter((body.run_id, body.step_id) for body in self.world.bodies).items():
            run = self._run(run_id)
            cap = run.policies[step_id].maximum_attempts if step_id in run.policies else 1
            failed = run.log.count(f"FailStep {step_id}")
            assert failed <= cap, f"{step_id} failed {failed} times"
            assert count <= cap + self.lost[run_id], f"{step_id} was executed {count} times"
        by_attempt = Counter((body.run_id, body.step_id, body.attempt) for body in self.world.bodies)
        for (run_id, step_id, attempt), count in by_attempt.items():
            assert count <= 1 + self.lost[run_id], f"attempt {attempt} of {step_id} was made {count} times"
        for (_, step_id), count in Counter(
            (body.run_id, body.step_id) for body in self.world.bodies if body.kind == "once"
        ).items():
            assert count == 1, f"{step_id} is to be run once, and ran {count} times"
        lost = [step for step in self.root.steps.values() if step.error is not None and step.error.kind == "lost"]
        assert len(lost) == 0 or self.lost[self.root.run_id], "a step was lost without a crash"
        if self.cancelled_with is not None:
            self._check_stopped(self.cancelled_with)

    def _check_stopped(self, before: set[str]) -> None:
        for step_id in set(self.root.steps) - before:
            step = self.root.steps[step_id]
            began = self.root.begins.get(step_id)
            cleans_up = began is not None and began.cleanup
            # How a race ended, and that code has changed, are notes about what the code did: they begin nothing.
            is_note = step.kind in (StepKind.RACE, StepKind.PATCH)
            assert cleans_up or is_note, f"{step} was recorded after the cancellation"

    async def check_replay(self) -> None:
        """P11: the finished run, replayed by a new worker, comes to the same end, and nothing is executed or
        recorded."""
        root = self.root
        output, steps, log = root.output, dict(root.steps), len(root.log)
        settled = {step_id: step for step_id, step in steps.items() if step.status is not StepStatus.RUNNING}
        self.world.bodies.clear()
        self._random.seed(self._random.random())
        self.server.executor = self.server.new_executor()
        root.status, root.cancel_requested = RunStatus.PENDING, False  # it came too late
        self._page = self._random.choice([1, 2, 10_000])
        await self.play()
        assert (root.status, root.output) == (RunStatus.COMPLETED, output)
        assert self.world.bodies == []
        assert set(root.steps) == set(steps)
        assert {step_id: root.steps[step_id] for step_id in settled} == settled
        assert root.log[log:] == ["CompleteRun"], root.log[log:]

"""Engine harness: runs a random program on a real engine and store, and lets something happen at one moment of its
life."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

from kagzi.core.errors import KagziError
from kagzi.core.providers import Clock
from kagzi.core.records import Payload, RunEnd, StepRecord
from kagzi.core.retry.policy import SERVER_DEFAULT
from kagzi.core.run.commands import (
    BeginStep,
    Command,
    CompleteStep,
    FailStep,
    RecordStep,
    SendSignal,
    StartRequest,
    WaitSignal,
)
from kagzi.core.run.outcomes import Outcome, Refused, StepFailed
from kagzi.core.states import RunStatus, StepKind
from kagzi.engine import Engine, Notice
from kagzi.engine.services.paging import PageAsk
from kagzi.sdk.worker.registry import Registry
from kagzi.testing import History
from tests.support.random_programs import PROCEED, Body, Durations, Player, Program, World
from tests.support.timeouts import LOADED_MACHINE_S

from .in_process import InProcessWorker

DURATIONS = Durations(long="30ms")
TIMEOUT_S = LOADED_MACHINE_S
P9_S = 1.0


class EngineHarness:
    """One performance, in a namespace of its own: many of them share an engine, and their commits."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        program: Program,
        seed: int,
        namespace: str,
        *,
        crash_at: int | None = None,
        cancel_at: int | None = None,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._random = Random(seed)
        self._loop = asyncio.get_running_loop()
        self.namespace = namespace
        self.player = Player(program)
        self.world = self.player.world = World(seed, DURATIONS)
        self.world.before_body = self._before_body
        self.registry = Registry(self.player.workflows)
        self._crash_at = crash_at
        self._cancel_at = cancel_at
        self.moments: list[str] = []
        self.crashes = 0
        self.lost: Counter[str] = Counter()  # leases, by run
        self.run_id = ""
        self._started = asyncio.Event()
        self._is_over = False
        self._worker: InProcessWorker | None = None
        self._settled: set[tuple[str, str]] = set()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._caps: dict[tuple[str, str], int] = {}
        self._cleanup_steps: set[str] = set()
        self._signals: set[asyncio.Task[None]] = set()
        self.cancelled_with: set[str] | None = None  # the steps recorded when the cancellation was acknowledged
        self._cancelled_at = float("inf")
        self._notified = False

    # --- the performance ----------------------------------------------------------------------------------------------

    async def play(self) -> RunEnd:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._play()
        except (AssertionError, TimeoutError, KagziError) as error:
            struck = f"crash_at={self._crash_at} cancel_at={self._cancel_at}"
            record = await self._engine.runs.get(self.namespace, run_id=self.run_id)
            error.add_note(f"{struck}: {self.moments[-12:]}\n{self.player.program}\n{record}")
            raise
        finally:
            for signal in self._signals:
                signal.cancel()
            self._is_over = True
            if self._worker is not None:
                await (self._worker.die() if self._worker.is_dead.is_set() else self._worker.leave())

    async def _play(self) -> RunEnd:
        self._worker = await self._new_worker()
        started = await self._engine.runs.start(StartRequest(namespace=self.namespace, workflow_type="program"))
        self.run_id = started.run_id
        self._started.set()
        ended = asyncio.create_task(
            self._engine.runs.wait(self.namespace, run_id=self.run_id, timeout_ms=int(TIMEOUT_S * 1_000))
        )
        try:
            while not ended.done():
                await asyncio.wait((ended, self._worker.working), return_when=asyncio.FIRST_COMPLETED)
                if self._worker.working.done():
                    self._worker.working.result()
                    self.lost.update(await self._worker.die())
                    self._worker = await self._new_worker()
        finally:
            ended.cancel()
        end = await ended
        assert isinstance(end, RunEnd), f"the run hangs, it is {end}"
        return end

    async def _new_worker(self) -> InProcessWorker:
        worker = InProcessWorker(self._engine, self._clock, self.namespace, self.registry, self._moment)
        worker.on_durable, worker.on_sent, worker.on_notice = self._on_durable, self._on_sent, self._on_notice
        await worker.open()
        return worker

    # --- what happens -------------------------------------------------------------------------------------------------

    def _moment(self, what: str) -> "Callable[[], Awaitable[None]] | None":
        number = len(self.moments)
        self.moments.append(what)
        cancels, crashes = number == self._cancel_at, number == self._crash_at
        struck = (cancels or crashes) and not self._is_over
        return partial(self._strike, cancels=cancels, crashes=crashes) if struck else None

    async def _strike(self, *, cancels: bool, crashes: bool) -> None:
        await self._started.wait()
        if cancels:
            await self._engine.control.cancel(self.namespace, run_id=self.run_id, reason="stop")
            self._cancelled_at = self._loop.time()
            self.cancelled_with = {step.step_id for step in await self.steps()}
        if crashes and not self._is_over:
            self.crashes += 1
            assert self._worker is not None
            self._worker.is_dead.set()

    async def steps(self) -> tuple[StepRecord, ...]:
        page = await self._engine.steps.list(
            self.namespace, self.run_id, name=None, page=PageAsk(size=1_000), payloads=True
        )
        return tuple(page.rows)

    async def history(self) -> History:
        lines = [line async for line in self._engine.transfers.export(self.namespace, self.run_id)]
        return History.read(lines, self.run_id, namespace=self.namespace)

    def _on_notice(self, notice: Notice) -> None:
        if notice.kind == "cancel_requested" and notice.leased.run.run_id == self.run_id:
            self._notified = True

    def _on_sent(self, command: Command) -> None:
        if getattr(command, "cleanup", False):
            self._cleanup_steps.add(command.step_id)  # type: ignore[union-attr]
        match command:
            case BeginStep(attempt=1, once=True):
                self._caps.setdefault((command.run.run_id, command.step_id), 1)
            case BeginStep(attempt=1, retry=retry) | RecordStep(attempt=1, retry=retry):
                cap = (retry or SERVER_DEFAULT).maximum_attempts
                self._caps.setdefault((command.run.run_id, command.step_id), cap)
            case WaitSignal(signal_name=PROCEED.name):
                signal = asyncio.create_task(self._send_signal(self._random.choice([0.0, 0.03])))
                self._signals.add(signal)
                signal.add_done_callback(self._signals.discard)

    async def _send_signal(self, delay_s: float) -> None:
        await self._started.wait()  # its worker may be quicker than the answer to who started it
        await asyncio.sleep(delay_s)
        signal_request = SendSignal(name=PROCEED.name, payload=Payload(b'"went"'), request_id="")
        try:
            await self._engine.control.signal(self.namespace, run_id=self.run_id, signal=signal_request)
        except KagziError:
            if not (await self._engine.runs.get(self.namespace, run_id=self.run_id)).status.ended:
                raise

    def _on_durable(self, command: Command, outcome: Outcome) -> None:
        if isinstance(command, RecordStep | CompleteStep | FailStep) and not isinstance(outcome, Refused):
            key = (command.run.run_id, command.step_id)
            self._failed[key] += isinstance(command, FailStep)
            if isinstance(command, RecordStep | CompleteStep) or isinstance(outcome, StepFailed):
                self._settled.add(key)

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _before_body(self, body: Body) -> None:
        assert (body.run_id, body.step_id) not in self._settled, f"{body} runs although its result is recorded"
        stopped = self._notified or self._loop.time() > self._cancelled_at + P9_S
        assert not stopped or body.run_id != self.run_id or body.cleans_up, f"{body} begins in a cancelled run"

    async def check(self) -> None:
        """P6 and P9: what was executed how often, and what was recorded after a cancellation."""
        bodies = self.world.bodies
        for key, count in Counter((body.run_id, body.step_id) for body in bodies).items():
            cap = self._caps.get(key, 1)
            assert self._failed[key] <= cap, f"{key} failed {self._failed[key]} times"
            assert count <= cap + self.lost[key[0]], f"{key} was executed {count} times"
        for (run_id, *step), count in Counter((body.run_id, body.step_id, body.attempt) for body in bodies).items():
            assert count <= 1 + self.lost[run_id], f"{step} was executed {count} times"
        for key, count in Counter((body.run_id, body.step_id) for body in bodies if body.kind == "once").items():
            assert count == 1, f"{key} is to be run once, and ran {count} times"
        if self.cancelled_with is not None:
            for step in await self.steps():
                # How a race ended, and that code has changed, are notes about what the code did: they begin nothing.
                is_note = step.kind in (StepKind.RACE, StepKind.PATCH)
                allowed = step.step_id in self.cancelled_with or step.step_id in self._cleanup_steps or is_note
                assert allowed, f"{step} was recorded after the cancellation"

    def value_of(self, end: RunEnd) -> Any:
        return end.status, end.output.data if end.status is RunStatus.COMPLETED and end.output else None

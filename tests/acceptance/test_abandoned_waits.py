"""Random programs that give up waits for signals, on the real engine and both real stores, under a stream of signals,
with workers that die at any moment: each signal is received once and in order, or unread.

KAGZI_TEST_ENGINE_PROGRAMS says how many programs a store is given; `make properties` gives it 100.
"""

import asyncio
import json
import os
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi.core.errors import PreconditionFailed
from kagzi.core.providers import Clock
from kagzi.core.records import Payload, RunEnd
from kagzi.core.run.commands import SendSignal, StartRequest
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.sdk.worker.registry import Registry
from tests.support.signal_programs import NAMES, Program, SignalPlayer, check_received, programs

from .engine_harness import TIMEOUT_S, EngineHarness
from .test_every_boundary import MovableClock, database, harnesses

__all__ = ["database"]

COUNT = int(os.environ.get("KAGZI_TEST_ENGINE_PROGRAMS", "4"))
pytestmark = pytest.mark.timeout(120 + 60 * COUNT)
SOME = settings(
    max_examples=COUNT,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
MOST_SIGNALS = 8
MOST_CRASHES = 12


class SignalHarness(EngineHarness):
    """Sends signals, one after the other, from before the run begins until it has ended."""

    def __init__(
        self, engine: Engine, clock: Clock, program: Program, seed: int, namespace: str, *, crash_at: int | None
    ) -> None:
        super().__init__(engine, clock, [], seed, namespace, crash_at=crash_at)
        self.signal_player = SignalPlayer(program)
        self.registry = Registry(self.signal_player.workflows)
        self.sent = dict.fromkeys(NAMES, 0)

    async def _play(self) -> RunEnd:
        self._worker = await self._new_worker()
        request = StartRequest(namespace=self.namespace, workflow_type="program", workflow_id="program")
        self.run_id = (await self._engine.runs.start(request)).run_id
        self._started.set()
        sending = asyncio.create_task(self._send_all())
        try:
            return await self._until_ended()
        finally:
            sending.cancel()
            await asyncio.wait((sending,))

    async def _until_ended(self) -> RunEnd:
        while True:
            wait = self._engine.runs.wait(self.namespace, run_id=self.run_id, timeout_ms=int(TIMEOUT_S * 1_000))
            ended = asyncio.create_task(wait)
            while not ended.done():
                assert self._worker is not None
                await asyncio.wait((ended, self._worker.working), return_when=asyncio.FIRST_COMPLETED)
                if self._worker.working.done():
                    self._worker.working.result()
                    self.lost.update(await self._worker.die())
                    self._worker = await self._new_worker()
            end = ended.result()
            assert isinstance(end, RunEnd), f"the run hangs, it is {end}"
            record = await self._engine.runs.get(self.namespace, workflow_id="program")
            if record.run.run_id == self.run_id:
                return end
            self.run_id = record.run.run_id  # it went on as a new one

    async def _send_all(self) -> None:
        while sum(self.sent.values()) < MOST_SIGNALS:
            await asyncio.sleep(self._random.choice([0.0, 0.0, 0.001, 0.01]))
            if not await self._send_next():
                return

    async def _send_next(self) -> bool:
        """False: the run has ended."""
        name = self._random.choice(NAMES)
        payload = Payload(json.dumps(self.sent[name]).encode())
        signal = SendSignal(name=name, payload=payload, request_id="")
        try:
            sent = asyncio.ensure_future(
                self._engine.control.signal(self.namespace, workflow_id="program", signal=signal)
            )
            await asyncio.shield(sent)
        except PreconditionFailed:
            return False
        except asyncio.CancelledError:
            await asyncio.wait((sent,))
            self.sent[name] += sent.exception() is None
            raise
        self.sent[name] += 1
        return True

    async def check(self) -> None:
        record = await self._engine.runs.get(self.namespace, run_id=self.run_id)
        assert record.status is RunStatus.COMPLETED, record
        assert record.output is not None
        check_received(json.loads(record.output.data), self.sent, record.unread_signals)


@given(program=programs(timed=False), seed=st.integers(0, 2**32))
@SOME
async def test_every_signal_is_received_once_or_unread(database: str, program: Program, seed: int) -> None:
    # A claim skips a run that a signal has locked at that moment: the next poll finds it.
    async with harnesses(database, poll_interval_ms=100) as engine_harnesses:
        names = iter(range(1_000))

        async def perform(crash_at: int | None) -> SignalHarness:
            clock: MovableClock = engine_harnesses._clock
            namespace = f"s{os.urandom(6).hex()}-{next(names)}"  # examples share a database
            harness = SignalHarness(engine_harnesses._engine, clock, program, seed, namespace, crash_at=crash_at)
            try:
                await harness.play()
                await harness.check()
            except AssertionError as error:
                steps = [f"{step.step_id} {step.status.value} {step.seq}" for step in await harness.steps()]
                error.add_note(f"crash_at={crash_at} {program} {harness.sent}\n{steps}")
                raise
            return harness

        count = len((await perform(None)).moments)
        moments = range(count) if count <= MOST_CRASHES else sorted(Random(seed).sample(range(count), MOST_CRASHES))
        crashed = await asyncio.gather(*map(perform, moments))
        assert not moments or any(harness.crashes for harness in crashed)

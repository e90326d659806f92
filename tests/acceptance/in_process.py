"""A worker and its session without a network, on a real engine: the messages are the same, and every moment can be
struck.

The SDK's own executor, outbox and held runs on one side, the engine's session on the other. What the worker sends goes
to the engine message by message, and what it is told comes in the order of a stream; where something is to happen, a
message is cut: what is before is durable, what is after is not sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from kagzi.core.providers import Clock
from kagzi.core.records import ClaimedRun, RunKey, WorkerRecord
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Outcome, Refused
from kagzi.engine import Engine, Notice
from kagzi.engine.matching.session import Session
from kagzi.sdk.worker.executor import Executor
from kagzi.sdk.worker.leased_runs import LeasedRuns
from kagzi.sdk.worker.outbox import Outbox
from kagzi.sdk.worker.registry import Registry
from kagzi.server.grpc.session import _write_notice
from kagzi.v1 import common_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.common import read_lease, read_leased
from kagzi.wire.operations import read_operation, write_answers
from kagzi.wire.tasks import write_task
from tests.support.timeouts import LOADED_MACHINE_S

HOLD_S = 0.005
TIMEOUT_S = LOADED_MACHINE_S

Happening = Callable[[], Awaitable[None]]
Moment = Callable[[str], Happening | None]
"""Told of each moment; answers what is to happen there, if anything."""


class InProcessWorker:
    """Implements kagzi.engine.Outlet. `open` it; `die` or `leave` ends it. `moment` may let it die."""

    def __init__(self, engine: Engine, clock: Clock, namespace: str, registry: Registry, moment: Moment) -> None:
        self._engine = engine
        self._clock = clock
        self._namespace = namespace
        self._served = registry.served
        self._moment = moment
        self.executor = Executor(registry, resident_wait_ms=10)
        self._outbox = Outbox(self._wake, self._start_hold)
        self._outbox.records_whole_steps = True
        self.leased = LeasedRuns(self._outbox, self.executor, _no_more_history)
        self.on_durable: Callable[[Command, Outcome], None] = lambda command, outcome: None
        self.on_sent: Callable[[Command], None] = lambda command: None
        self.on_notice: Callable[[Notice], None] = lambda notice: None
        self.is_dead = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._inbox: asyncio.Queue[pb.SessionRequest | pb.SessionResponse | Notice] = asyncio.Queue()
        self._sent: dict[int, Command] = {}
        self._all_answered = asyncio.Event()
        self._session: Session | None = None
        self.working: asyncio.Task[None] = asyncio.create_task(self._run())  # until it is dead

    async def open(self) -> None:
        record = WorkerRecord(worker_id="", namespace=self._namespace, served=self._served, max_concurrent=50)
        self._session = await self._engine.sessions.open(record, (), self)

    async def die(self) -> list[str]:
        """Nothing more is sent or heard. Returns the runs that it held."""
        self.is_dead.set()
        leased = list(self.leased._ports.values())
        for port in leased:
            self.leased.abandon(port, "the worker is dead")
        await self._end()
        assert self._session is not None
        await self._session.close()
        return [port.run_id for port in leased]

    async def leave(self) -> None:
        self.executor.release_all("the worker stops")
        async with asyncio.timeout(TIMEOUT_S):
            await self.executor.drained()
        self.is_dead.set()
        await self._end()
        assert self._session is not None
        await self._session.goodbye()

    async def _end(self) -> None:
        self.working.cancel()
        await asyncio.wait((self.working,))
        self.executor.release_all("over")
        async with asyncio.timeout(TIMEOUT_S):
            await self.executor.drained()
        self.executor.close()

    # --- what it hears ------------------------------------------------------------------------------------------------

    @property
    def sent(self) -> int:
        return 0

    def tasks(self, claimed: Sequence[ClaimedRun]) -> None:
        self._receive(pb.SessionResponse(tasks=[write_task(run) for run in claimed]))

    def answers(self, answers: Sequence[tuple[int, Outcome]]) -> None:
        for number, outcome in answers:
            command = self._sent.pop(number, None)
            if command is not None:
                self.on_durable(command, outcome)
        if not self._sent:
            self._all_answered.set()
        response = pb.SessionResponse()
        write_answers(response, answers, self._clock.now())
        self._receive(response)

    def notices(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self._inbox.put_nowait(notice)

    def _receive(self, response: pb.SessionResponse) -> None:
        self._inbox.put_nowait(pb.SessionResponse.FromString(response.SerializeToString()))

    def stopping(self) -> None: ...

    def drain(self) -> None: ...

    # --- what it says -------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._loop.call_soon(self._take)

    def _start_hold(self) -> None:
        self._loop.call_later(HOLD_S, self._outbox.release_waiting)

    def _take(self) -> None:
        for data in self._outbox.take():
            self._inbox.put_nowait(pb.SessionRequest.FromString(data))

    async def _run(self) -> None:
        while not self.is_dead.is_set():
            message = await self._inbox.get()
            if isinstance(message, pb.SessionRequest):
                await self._submit(self._read(message))
            elif isinstance(message, pb.SessionResponse):
                self.leased.answers(message)
                for task in message.tasks:
                    await self._accept(task)
            else:
                self.on_notice(message)
                self.leased.notice(_write_notice(message))

    async def _accept(self, task: pb.Task) -> None:
        happening = self._moment(f"claim of {task.workflow_type}")
        if happening is not None:
            await happening()
        if not self.is_dead.is_set():
            assert self._session is not None
            proof = pb.LeasedRun.FromString(self.leased.accept(task))
            self._session.received([read_leased(proof, self._namespace)])

    def _read(self, request: pb.SessionRequest) -> list[tuple[int, Command]]:
        operations: list[tuple[int, Command]] = []
        for part in request.runs:
            run, lease = RunKey(self._namespace, part.run_id), read_lease(part.lease)
            for operation in part.operations:
                command = read_operation(operation, run, lease, self._clock.now())
                assert not isinstance(command, Refused), command
                operations.append((operation.id, command))
        return operations

    async def _submit(self, operations: list[tuple[int, Command]]) -> None:
        done = 0
        for index, (_, command) in enumerate(operations):
            for place, side in ((index, "before"), (index + 1, "after")):
                happening = self._moment(f"{side} {type(command).__name__}")
                if happening is None:
                    continue
                await self._strike(operations[done:place], happening)
                done = place
                if self.is_dead.is_set():
                    return
        await self._send(operations[done:])

    async def _strike(self, durable: list[tuple[int, Command]], happening: Happening) -> None:
        """Something happens when everything sent is durable, and before any answer to it is heard."""
        await self._send(durable)
        async with asyncio.timeout(TIMEOUT_S):
            while self._sent:
                self._all_answered.clear()
                await self._all_answered.wait()
        await happening()

    async def _send(self, operations: list[tuple[int, Command]]) -> None:
        if operations:
            self._sent.update(operations)
            for _, command in operations:
                self.on_sent(command)
            assert self._session is not None
            await self._session.submit(operations)


async def _no_more_history(run_id: str, lease: common_pb2.Lease, after: int) -> Sequence[pb.HistoryStep]:
    raise AssertionError("the histories of these programs fit into one page")

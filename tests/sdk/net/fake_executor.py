"""An executor that executes nothing: it keeps the ports for a test to use."""

import asyncio
from typing import Any

from kagzi.sdk.execution.ports import Answer, RunPort
from kagzi.v1 import worker_pb2 as pb
from tests.support.timeouts import LOADED_MACHINE_S

WAIT_S = LOADED_MACHINE_S


class FakeExecution:
    def __init__(self, executor: "FakeExecutor", task: pb.Task, port: RunPort) -> None:
        self.task = task
        self.port = port
        self.abandoned: list[str] = []
        self.cancelled: list[str] = []
        self.paused: list[str] = []
        self.server_failures: list[str] = []
        self.notices_received = 0
        self.is_open = True
        self._executor = executor

    def abandon(self, reason: str) -> None:
        self.abandoned.append(reason)
        self.close()

    def cancel(self, reason: str) -> None:
        self.cancelled.append(reason)
        self._executor.changed.set()

    def pause(self, reason: str) -> None:
        self.paused.append(reason)
        self._executor.changed.set()

    def server_failed(self, reason: str) -> None:
        self.server_failures.append(reason)
        self.port.send(lambda _: self.close()).release.reason = reason

    def results_available(self) -> None:
        self.notices_received += 1
        self._executor.changed.set()

    def close(self) -> None:
        self.is_open = False
        self.port.close()
        self._executor.changed.set()


class FakeExecutor:
    threads = None
    step_logs = None

    def __init__(self) -> None:
        self.executions: list[FakeExecution] = []
        self.released: list[str] = []
        self.changed = asyncio.Event()

    def accept(self, task: pb.Task, port: RunPort) -> FakeExecution:
        execution = FakeExecution(self, task, port)
        self.executions.append(execution)
        self.changed.set()
        return execution

    def release_all(self, reason: str) -> None:
        """Hands every run back; closed when that is answered."""
        self.released.append(reason)
        for execution in self.executions:
            if execution.is_open:
                execution.port.send(lambda _, execution=execution: execution.close()).release.reason = reason

    @property
    def active(self) -> int:
        return sum(execution.is_open for execution in self.executions)

    async def drained(self) -> None:
        await self.until(lambda: not self.active)

    def close(self) -> None: ...

    async def until(self, condition: Any) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def accepted(self, count: int) -> list[FakeExecution]:
        async with asyncio.timeout(WAIT_S):
            await self.until(lambda: len(self.executions) >= count)
        return self.executions


class Answers:
    """An `on_answer` that remembers."""

    def __init__(self) -> None:
        self.seen: asyncio.Queue[Answer] = asyncio.Queue()

    def __call__(self, answer: Answer) -> None:
        self.seen.put_nowait(answer)

    async def next(self) -> Answer:
        async with asyncio.timeout(WAIT_S):
            return await self.seen.get()

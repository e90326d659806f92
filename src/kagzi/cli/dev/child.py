"""The worker process of `kagzi dev`: starts, stops and restarts it, and reads its reports."""

import asyncio
import sys
from datetime import timedelta
from typing import Any

from ..supervise.child import ChildProcess, Report, start_child

RELOAD = "reload"
RELOAD_GRACE = timedelta(seconds=2)  # short, as the new code should run at once; unfinished steps run again


class WorkerChild:
    """One worker process. `on_report` gets `loaded`, `ready`, `broken`, `missing`, and finally `ended` with the exit
    code."""

    def __init__(self, target: str, namespace: str | None, on_report: Report) -> None:
        self._target = target
        self._namespace = namespace or ""
        self._on_report = on_report
        self._process: ChildProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self._grace_s = 0.0  # set by its report
        self._ready = False

    async def start(self) -> None:
        """Returns when the process exists; it then waits for `connect`."""
        self._ready = False
        # -B: cached bytecode is compared by second and size only, and an edit may have the size of what it replaces
        command = (sys.executable, "-B", "-m", f"{__package__}.worker", self._target, self._namespace)
        self._process = await start_child(command, self._reported)
        self._watching = asyncio.create_task(self._watch(self._process))

    def connect(self, address: str) -> None:
        """Sends it the address of the server."""
        if self._process is not None:
            self._process.send(address)

    async def stop(self) -> None:
        """Lets it drain within its own `shutdown_grace`, then kills it. Idempotent."""
        if self._process is not None:
            self._process.terminate()
            await self._end(self._grace_s)

    async def stop_to_reload(self) -> None:
        """Stops with a short grace time: new code takes over its runs."""
        if self._process is None:
            return
        if self._ready:
            self._process.send(RELOAD)
            await self._end(RELOAD_GRACE.total_seconds())
        else:
            await self.stop()  # it may still be importing user code, and not be reading

    def kill(self) -> None:
        """Kills it at once."""
        if self._process is not None:
            self._process.kill()

    async def _end(self, grace_s: float) -> None:
        if self._process is not None and self._watching is not None:
            await self._process.end_within(grace_s)
            await self._watching
        self._process = None

    async def _watch(self, process: ChildProcess) -> None:
        self._on_report({"event": "ended", "code": await process.ended()})

    def _reported(self, report: dict[str, Any]) -> None:
        self._grace_s = report.get("shutdown_grace_s", self._grace_s)
        self._ready = report["event"] == "ready"
        self._on_report(report)

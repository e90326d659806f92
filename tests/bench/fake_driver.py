"""The load generator of an engine that only pretends: `python fake_driver.py [wrong|dies]`. Runs in this process."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "programs"))

from protocol import load, run, serve


class Fake:
    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._started = 0

    async def run(self, flow: str, value: Any) -> Any:
        await asyncio.sleep(0.001)
        if self._fault == "dies" and flow == "fan_out" and value == 20:
            os._exit(3)
        if flow == "sleeper":
            await asyncio.sleep(max(value - load.now_ms(), 0) / 1_000)
            return load.now_ms() + 1
        if flow == "timed":
            return {"done": value, "ms": 1.0}
        steps = value if isinstance(value, int) else value["steps"]
        return -1 if self._fault == "wrong" and steps == 1 else steps

    async def start(self, flow: str, value: Any) -> str:
        self._started += 1
        if flow == "replayed":
            load.mark(value["directory"], "entered")
            load.mark(value["directory"], "stepped")
            return f"{value['directory']} {value['steps']}"
        return f"{self._started} {value}"

    async def result(self, flow: str, run_id: str) -> Any:
        first, second = run_id.split()
        if flow == "sleeper":
            return await self.run(flow, int(second))
        load.mark(first, "entered")
        assert load.mark(first, "stepped")
        return int(second)


async def main(fault: str) -> None:
    await serve(Fake(fault))


if __name__ == "__main__":
    run(main(sys.argv[1] if len(sys.argv) > 1 else ""))

"""DBOS: worker and load generator in one process, as in its documentation: python dbos_driver.py URL"""

import asyncio
import logging
import sys
from time import perf_counter
from typing import Any

from dbos import DBOS, DBOSClient
from protocol import load, run, serve


@DBOS.step()
async def no_op(i: int) -> dict[str, int]:
    return {"i": i}


@DBOS.step()
async def body(i: int, body_ms: int) -> dict[str, int]:
    await asyncio.sleep(body_ms / 1_000)
    return {"i": i}


@DBOS.step()
async def payload(i: int, size_bytes: int) -> dict[str, Any]:
    return {"i": i, "data": "x" * size_bytes}


@DBOS.workflow()
async def sequence(steps: int) -> int:
    done = 0
    for i in range(steps):
        result = await no_op(i)
        done += result["i"] == i
    return done


@DBOS.workflow()
async def timed(steps: int) -> dict[str, float]:
    began = perf_counter()
    done = 0
    for i in range(steps):
        result = await no_op(i)
        done += result["i"] == i
    return {"done": done, "ms": (perf_counter() - began) * 1_000}


@DBOS.workflow()
async def fan_out(steps: int) -> int:
    results = await asyncio.gather(*(no_op(i) for i in range(steps)))
    return sum(result["i"] == i for i, result in enumerate(results))


@DBOS.workflow()
async def bodies(options: dict[str, Any]) -> int:
    done = 0
    for i in range(options["steps"]):
        result = await body(i, options["body_ms"])
        done += result["i"] == i
    return done


@DBOS.workflow()
async def payloads(options: dict[str, Any]) -> int:
    done = 0
    for i in range(options["steps"]):
        result = await payload(i, options["bytes"])
        done += len(result["data"]) == options["bytes"]
    return done


@DBOS.workflow()
async def sleeper(due_ms: int) -> int:
    await DBOS.sleep_async(max(due_ms - load.now_ms(), 0) / 1_000)
    return load.now_ms()


@DBOS.workflow()
async def replayed(options: dict[str, Any]) -> int:
    load.mark(options["directory"], "entered")
    done = 0
    for i in range(options["steps"]):
        result = await no_op(i)
        done += result["i"] == i
    if not load.mark(options["directory"], "stepped"):
        await asyncio.Event().wait()
    return done


FLOWS: dict[str, Any] = {
    "sequence": sequence,
    "timed": timed,
    "fan_out": fan_out,
    "bodies": bodies,
    "payloads": payloads,
    "sleeper": sleeper,
    "replayed": replayed,
}


class Dbos:
    def __init__(self, client: DBOSClient) -> None:
        self._client = client
        self._handles: dict[str, Any] = {}

    async def run(self, flow: str, value: Any) -> Any:
        handle = await DBOS.start_workflow_async(FLOWS[flow], value)
        return await handle.get_result()

    async def start(self, flow: str, value: Any) -> str:
        """A run that no worker serves waits in a queue without a listener."""
        if flow == load.UNSERVED:
            waiting = await self._client.enqueue_async({"queue_name": "nobody", "workflow_name": flow}, value)
            return waiting.get_workflow_id()
        handle = await DBOS.start_workflow_async(FLOWS[flow], value)
        self._handles[handle.get_workflow_id()] = handle
        return handle.get_workflow_id()

    async def result(self, _flow: str, run_id: str) -> Any:
        handle = self._handles.pop(run_id, None) or await DBOS.retrieve_workflow_async(run_id)
        return await handle.get_result()


async def main(url: str) -> None:
    DBOS(config={"name": "bench", "system_database_url": url, "application_version": "1", "log_level": "WARNING"})
    DBOS.launch()
    logging.getLogger("dbos").setLevel(logging.WARNING)
    try:
        await serve(Dbos(DBOSClient(system_database_url=url)))
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    run(main(sys.argv[1]))

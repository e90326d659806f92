"""Temporal's load generator: python temporal_driver.py ADDRESS"""

import itertools
import os
import sys
from typing import Any

from protocol import load, run, serve
from temporalio.client import Client


class Temporal:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._serial = itertools.count()

    async def run(self, flow: str, value: Any) -> Any:
        return await self._client.execute_workflow(flow, value, id=self._id(), task_queue="bench")

    async def start(self, flow: str, value: Any) -> str:
        queue = "nobody" if flow == load.UNSERVED else "bench"
        handle = await self._client.start_workflow(flow, value, id=self._id(), task_queue=queue)
        return handle.id

    async def result(self, flow: str, run_id: str) -> Any:
        handle = self._client.get_workflow_handle(run_id)
        if flow == "replayed":
            await handle.signal("wake")
        return await handle.result()

    def _id(self) -> str:
        return f"{os.getpid()}-{next(self._serial)}"


async def main(address: str) -> None:
    await serve(Temporal(await Client.connect(address)))


if __name__ == "__main__":
    run(main(sys.argv[1]))

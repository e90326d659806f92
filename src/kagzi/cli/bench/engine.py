"""Kagzi as an engine for the load generator."""

from typing import Any

from ...sdk.client.client import Kagzi
from .flows import FLOWS
from .load import UNSERVED

RUN_TIMEOUT = "300s"


class KagziEngine:
    """Uses one client. A worker serves `flows`; no worker serves UNSERVED."""

    def __init__(self, client: Kagzi) -> None:
        self._client = client

    async def run(self, flow: str, input: Any) -> Any:
        return await self._client.run(FLOWS[flow], input, timeout=RUN_TIMEOUT)

    async def start(self, flow: str, input: Any) -> str:
        run = await self._client.start(UNSERVED if flow == UNSERVED else FLOWS[flow], input)
        return run.id

    async def result(self, flow: str, run: str) -> Any:
        return await self._client.get(run, FLOWS[flow]).result(timeout=RUN_TIMEOUT)

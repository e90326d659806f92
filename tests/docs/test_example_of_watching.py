"""e09 as it is: a web application that starts orders and tells its browsers what happens to them, as it happens."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples import e09_fastapi
from kagzi import Kagzi
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from tests.support.timeouts import LOADED_MACHINE_S

DEADLINE_S = LOADED_MACHINE_S
ORDER = {"user_id": 123, "items": ["book"], "total": 9.5}


@pytest.fixture
async def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    config = ServerConfig(db=f"sqlite:///{tmp_path}/kagzi.db", listen=ListenAddress("127.0.0.1", 0), http=None)
    server = Server(config)
    await server.start()
    monkeypatch.setenv("KAGZI_ADDRESS", server.grpc_address)
    transport = httpx.ASGITransport(app=e09_fastapi.app)
    async with (
        e09_fastapi.lifespan(e09_fastapi.app),
        httpx.AsyncClient(transport=transport, base_url="http://shop", timeout=DEADLINE_S) as client,
    ):
        yield client
    await server.stop(0)


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line]


async def test_an_order_is_placed_once_and_can_be_watched(browser: httpx.AsyncClient) -> None:
    placed = await browser.post("/orders/7", json=ORDER)
    assert placed.status_code == 202
    assert (await browser.post("/orders/7", json=ORDER)).json()["run"] == placed.json()["run"]
    watching = asyncio.create_task(browser.get("/orders/7/events"))
    kagzi: Kagzi = e09_fastapi.app.state.kagzi
    run = kagzi.get("order-7")
    async with asyncio.timeout(DEADLINE_S), aclosing(run.events()) as events:
        async for event in events:
            if event.get("status") == "sleeping":  # it waits for the payment, for half a minute
                break
    assert (await browser.get("/orders/7")).json() == "sleeping"
    await run.cancel("changed my mind")
    events_sent = events_of((await watching).text)
    assert events_sent[0]["kind"] == "run_started"
    assert [(event["kind"], event["step"]) for event in events_sent if "step" in event][:4] == [
        ("step_started", "fetch-user"),
        ("step_completed", "fetch-user"),
        ("step_started", "charge-card"),
        ("step_completed", "charge-card"),
    ]
    assert events_sent[-1]["kind"] == "run_cancelled"

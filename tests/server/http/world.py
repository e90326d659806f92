"""A real server with a worker, in a thread of this process, for clients of HTTP that know nothing of event loops."""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest import mock

import httpx

from kagzi import Context, NonRetryable, Signal, Worker, workflow
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.http.listener import HttpListener
from kagzi.server.http.page_data import PageData
from kagzi.server.listen import ListenAddress
from tests.support.timeouts import LOADED_MACHINE_S

T = TypeVar("T")
START_HTTP: Any = HttpListener.start
ANY_PORT = ListenAddress("127.0.0.1", 0)
APPROVE: Signal[Any] = Signal("approve", Any)


@workflow
async def hello(ctx: Context, name: str) -> str:
    return await ctx.step("greet").run(lambda: f"Hello, {name}!")


@workflow
async def approval(ctx: Context, order: dict[str, Any]) -> Any:
    await ctx.step("reserve").run(lambda: order)
    ctx.set_status("waits for a person", progress=0.5)
    return await ctx.wait_for(APPROVE)


@workflow
async def broken(ctx: Context, name: str) -> str:
    def fail() -> str:
        raise NonRetryable(f"no {name} today")

    await ctx.step("first").run(lambda: 1)
    return await ctx.step("break").run(fail)


@workflow
async def wordy(ctx: Context, count: int) -> int:
    """Results that are too many for a reader who does not read."""
    for number in range(count):
        await ctx.step(f"part-{number}").run(lambda: "x" * 1_000_000)
    return count


class World:
    """`client`: to its API. `data`: what that asks."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, data: PageData) -> None:
        self.server = server
        self.data = data
        self.url = server.http_url
        self._loop = loop
        self.client = httpx.Client(base_url=f"{self.url}/api/v1", timeout=LOADED_MACHINE_S)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the thread of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LOADED_MACHINE_S)

    def start(self, workflow: str, **fields: Any) -> str:
        answer = self.client.post("/runs", json={"workflow": workflow, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()["run_id"]

    def ended(self, run_id: str, namespace: str = "default") -> dict[str, Any]:
        """How it ended."""
        answer = self.client.get(f"/runs/{run_id}/wait", params={"namespace": namespace})
        assert answer.json()["ended"], answer.text
        return answer.json()


@contextmanager
def world(db: str = ":memory:", *, api_key: str | None = None, **config: Any) -> Generator[World]:
    started: Future[tuple[World, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    datas: list[PageData] = []

    async def start_http(self: HttpListener, data: PageData, *rest: Any) -> None:
        datas.append(data)
        await START_HTTP(self, data, *rest)

    async def serve() -> None:
        server = Server(ServerConfig(db=db, listen=ANY_PORT, http=ANY_PORT, **config))
        with mock.patch.object(HttpListener, "start", start_http):
            await server.start()
        stopped = asyncio.Event()
        try:
            async with Worker(
                server.grpc_address,
                workflows=[hello, approval, broken, wordy],
                shutdown_grace="1s",
                api_key=api_key,
            ):
                loop = asyncio.get_running_loop()
                started.set_result((World(server, loop, datas[0]), loop, stopped))
                await stopped.wait()
        finally:
            await server.stop(0)

    def thread() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    serving = threading.Thread(target=thread, name="server of a test", daemon=True)
    serving.start()
    made, loop, stopped = started.result(LOADED_MACHINE_S)
    try:
        yield made
    finally:
        made.client.close()
        loop.call_soon_threadsafe(stopped.set)
        serving.join(LOADED_MACHINE_S)

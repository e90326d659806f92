"""What clients and workers make of keys, by gRPC and by WebSocket: a key that is not good is told in words, at once,
and nobody connects again for ever."""

import asyncio
from pathlib import Path

import pytest

from kagzi import Context, Kagzi, PermissionDenied, Unauthenticated, Worker, workflow
from kagzi.server.config import AUTH_KEYS
from tests.server.conftest import ANY_PORT, QUICK, StartServer
from tests.server.keys import first_key
from tests.server.test_access import UNKNOWN_KEY
from tests.support.timeouts import LOADED_MACHINE_S


@workflow
async def greeting(ctx: Context, name: str) -> str:
    return await ctx.step("greet").run(lambda: f"Hello, {name}!")


@pytest.mark.parametrize("websocket", [False, True])
async def test_a_key_is_told_in_words_and_ends_in_words(
    start_server: StartServer, tmp_path: Path, websocket: bool
) -> None:
    url = f"sqlite:///{tmp_path}/kagzi.db"
    first = await first_key(url)
    settings = type(QUICK)(keys_check_ms=100)
    server = await start_server(url, auth=AUTH_KEYS, settings=settings, http=ANY_PORT if websocket else None)
    address = server.grpc_address
    for key, words in ((None, "KAGZI_API_KEY"), ("secret", "not an API key"), (UNKNOWN_KEY, "not known")):
        with pytest.raises(Unauthenticated, match=words):
            async with Kagzi.connect(address, api_key=key):
                pass
        with pytest.raises(Unauthenticated, match=words):
            async with Worker(address, workflows=[greeting], api_key=key):
                pass
    async with Kagzi.connect(address, api_key=first) as operator:
        for_clients = await operator.keys.create("client", scopes=["client"])
        for_workers = await operator.keys.create("worker", scopes=["worker"])
        assert for_clients.key not in repr(for_clients)
        with pytest.raises(PermissionDenied, match="the scope worker"):
            async with Worker(address, workflows=[greeting], api_key=for_clients.key):
                pass
        working = asyncio.create_task(Worker(address, workflows=[greeting], api_key=for_workers.key).run())
        async with Kagzi.connect(address, api_key=for_clients.key) as client:
            assert await client.run(greeting, "Ada") == "Hello, Ada!"
            with pytest.raises(PermissionDenied, match="the scope admin"):
                await client.keys.revoke(for_workers.info.id)
            await operator.keys.revoke(for_workers.info.id)
            with pytest.raises(Unauthenticated, match="was revoked"):
                await asyncio.wait_for(working, LOADED_MACHINE_S)
            waiting = asyncio.create_task((await client.start(greeting, "Bob")).result())
            done, _ = await asyncio.wait({waiting}, timeout=0.2)
            assert not done
            await operator.keys.revoke(for_clients.info.id)
            with pytest.raises(Unauthenticated, match="was revoked"):
                await asyncio.wait_for(waiting, LOADED_MACHINE_S)
        listed = [key async for key in operator.keys.list(everywhere=True)]
        assert [(key.name, key.revoked_at is None) for key in listed] == [
            ("worker", False),
            ("client", False),
            ("operator", True),
        ]
        assert [change.action async for change in operator.keys.audit(everywhere=True, limit=2)] == ["key.revoke"] * 2

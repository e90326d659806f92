"""Calls of the HTTP API in a namespace of their own, which expect a status and read the rest as JSON."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc

from tests.server.http.world import World
from tests.server.stubs import Stubs

T = TypeVar("T")


class Nouns:
    def __init__(self, world: World, namespace: str) -> None:
        self.world = world
        self.namespace = namespace

    def call(self, method: str, path: str, *, body: Any = None, code: int = 200, key: str = "", **query: Any) -> Any:
        """`path`: percent-encoded. `key`: the Idempotency-Key."""
        parameters = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        if not path.startswith("namespaces"):
            parameters.setdefault("namespace", self.namespace)
        response = self.world.client.request(
            method, path, json=body, params=parameters, headers={"Idempotency-Key": key} if key else {}
        )
        assert response.status_code == code, response.text
        return response.json() if response.content else None

    def get(self, path: str, **options: Any) -> Any:
        return self.call("GET", path, **options)

    def do(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.call("POST", path, body=body, **options)

    def put(self, path: str, body: Any, **options: Any) -> Any:
        return self.call("PUT", path, body=body, **options)

    def patch(self, path: str, body: Any, **options: Any) -> Any:
        return self.call("PATCH", path, body=body, **options)

    def delete(self, path: str, **options: Any) -> Any:
        return self.call("DELETE", path, **options)

    def grpc(self, work: Callable[[Stubs], Awaitable[T]]) -> T:
        """What has no route: the work of workers."""

        async def connected() -> T:
            async with grpc.aio.insecure_channel(self.world.server.grpc_address) as channel:
                return await work(Stubs(channel))

        return self.world.run(connected())

"""No namespace can take a server from the others: whatever one opens, another gets its share at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kagzi.core import limits
from kagzi.core.budgets import NamespaceBudget
from kagzi.core.errors import ResourceExhausted, Unavailable
from kagzi.core.records import RunKey
from kagzi.engine import Watching
from kagzi.server.grpc.budgets import namespace_of
from kagzi.server.grpc.interceptor import Interceptor
from kagzi.server.grpc.listener import over_grpc
from kagzi.server.grpc.registration import LONG_POLLS, SERVICES, handlers, path_of
from kagzi.store.protocol import Store
from kagzi.system import SystemIds
from kagzi.v1 import worker_pb2, workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.stubs import TIMEOUT_S
from tests.support.polling import until

LIMIT = 3
SHARE = 1
METHODS = [method for service in SERVICES for method in service.methods]


class Busy:
    """Every method of every service: counts who is served, and holds them until it is let go."""

    def __init__(self) -> None:
        self.serving: Counter[str] = Counter()
        self.changed = asyncio.Condition()
        self.released = asyncio.Event()

    def service(self, methods: list[MethodDescriptor]) -> object:
        return type("Service", (), {method.name: staticmethod(self._serve(method)) for method in methods})()

    def _serve(self, method: MethodDescriptor) -> Callable[..., Awaitable[Any]]:
        request_type = GetMessageClass(method.input_type)

        async def unary(request: Message, *_: object) -> Message:
            await self._hold(namespace_of(request))
            return GetMessageClass(method.output_type)()

        async def stream(context: Any) -> None:
            await self._hold(namespace_of(request_type.FromString(await context.read())))

        return stream if method.client_streaming or method.server_streaming else unary

    async def _hold(self, namespace: str) -> None:
        async with self.changed:
            self.serving[namespace] += 1
            self.changed.notify_all()
        await self.released.wait()

    async def serves(self, namespace: str, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_S), self.changed:
            await self.changed.wait_for(lambda: self.serving[namespace] == count)


def request_of(method: MethodDescriptor, namespace: str) -> Message:
    if method.input_type is worker_pb2.SessionRequest.DESCRIPTOR:
        register = worker_pb2.RegisterRequest(namespace_id=namespace)
        return worker_pb2.SessionRequest(hello=worker_pb2.SessionHello(register=register))
    return GetMessageClass(method.input_type)(namespace_id=namespace)


def call(channel: grpc.aio.Channel, method: MethodDescriptor, namespace: str) -> asyncio.Task[Any]:
    path, data = path_of(method), request_of(method, namespace).SerializeToString()
    if not (method.client_streaming or method.server_streaming):
        return asyncio.ensure_future(_awaited(channel.unary_unary(path)(data, timeout=TIMEOUT_S)))

    async def stream() -> object:
        opened = cast("Any", channel.stream_stream(path)(timeout=TIMEOUT_S))
        await opened.write(data)
        return await opened.read()

    return asyncio.ensure_future(stream())


async def _awaited(answer: Awaitable[object]) -> object:
    return await answer


async def refusal(task: asyncio.Task[Any]) -> ResourceExhausted:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await task
    error = from_rpc_error(refused.value)
    assert isinstance(error, ResourceExhausted), error
    return error


@asynccontextmanager
async def served(interceptor: Interceptor, services: dict[str, object]) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(over_grpc(handlers(interceptor, services)))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(0)


def of_a_namespace(method: MethodDescriptor) -> bool:
    fields = method.input_type.fields_by_name
    return "namespace_id" in fields or "hello" in fields


def name_of_budget(method: MethodDescriptor) -> str:
    if method.client_streaming or method.server_streaming:
        return "streams"
    return "long_polls" if path_of(method) in LONG_POLLS else "calls"


def small(interceptor: Interceptor) -> None:
    for budget in (interceptor.budgets.calls, interceptor.budgets.polls, interceptor.budgets.streams):
        budget.limit, budget.share = LIMIT, SHARE


@pytest.mark.parametrize("method", [method for method in METHODS if of_a_namespace(method)], ids=path_of)
async def test_whatever_one_namespace_has_open_another_is_served_at_once(method: MethodDescriptor) -> None:
    interceptor, busy = Interceptor(ids=SystemIds()), Busy()
    small(interceptor)
    service = method.containing_service
    # A read that may be large waits for room among the answers, which is another bound.
    interceptor.answers._share = interceptor.answers._total = 1 << 40
    async with served(interceptor, {service.full_name: busy.service(list(service.methods))}) as channel:
        mine = [call(channel, method, "greedy") for _ in range(LIMIT)]
        await busy.serves("greedy", LIMIT)
        error = await refusal(call(channel, method, "greedy"))
        assert (error.metadata["limit"], error.metadata["maximum"]) == (name_of_budget(method), str(LIMIT))
        assert error.metadata["namespace"] == "greedy"
        assert "'greedy'" in error.message
        assert error.retry_after == timedelta(seconds=1)
        others = [call(channel, method, f"other-{number}") for number in range(2)]
        for number in range(2):
            await busy.serves(f"other-{number}", SHARE)
        beyond = await refusal(call(channel, method, "other-1"))
        assert beyond.metadata["namespace"] == "other-1"
        busy.released.set()
        await asyncio.gather(*mine, *others, return_exceptions=True)
        again = call(channel, method, "greedy")  # what was given back can be had
        await again
        assert busy.serving["greedy"] == LIMIT + 1


async def test_who_names_no_namespace_is_served_though_a_tenant_has_all() -> None:
    interceptor, busy = Interceptor(ids=SystemIds()), Busy()
    small(interceptor)
    nameless = [method for method in METHODS if not of_a_namespace(method)]
    assert nameless
    for method in nameless:
        for _ in range(LIMIT):
            interceptor.budgets.calls.take("greedy")
        service = method.containing_service
        async with served(interceptor, {service.full_name: busy.service(list(service.methods))}) as channel:
            data = GetMessageClass(method.input_type)().SerializeToString()
            task = asyncio.ensure_future(_awaited(channel.unary_unary(path_of(method))(data, timeout=TIMEOUT_S)))
            await busy.serves("", 1)
            busy.released.set()
            await task
        for _ in range(LIMIT):
            interceptor.budgets.calls.give_back("greedy")
        busy.serving.clear()
        busy.released.clear()


async def test_streams_that_say_nothing_keep_nobody_out() -> None:
    """They have not said whose they are, so they are counted together; the oldest of too many is closed."""
    interceptor, busy = Interceptor(ids=SystemIds()), Busy()
    interceptor._first_messages._limit = LIMIT
    method = workflow_pb2.DESCRIPTOR.services_by_name["WorkflowService"].methods_by_name["WaitStream"]
    service = method.containing_service
    async with served(interceptor, {service.full_name: busy.service(list(service.methods))}) as channel:
        silent = []
        for number in range(LIMIT):
            stream = cast("Any", channel.stream_stream(path_of(method))(timeout=TIMEOUT_S))
            silent.append(asyncio.ensure_future(_awaited(stream.read())))
            await until(lambda number=number: len(interceptor._first_messages._silent) == number + 1)
        speaking = call(channel, method, "tenant")
        await busy.serves("tenant", 1)
        error = await refusal(silent[0])
        assert error.metadata["limit"] == "silent_streams"
        assert not silent[1].done()
        interceptor.close()
        for stopped in silent[1:]:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stopped
            assert isinstance(from_rpc_error(refused.value), Unavailable)
        busy.released.set()
        await speaking


async def test_whoever_watches_much_leaves_others_their_watches() -> None:
    watching = Watching(cast("Store", _SilentStore()))
    watching.budget.limit, watching.budget.share = LIMIT, SHARE
    watches = [watching.watch("greedy", RUN, 1) for _ in range(LIMIT)]
    begun = [asyncio.ensure_future(anext(watch)) for watch in watches]
    await until(lambda: watching.budget.used("greedy") == LIMIT)
    with pytest.raises(ResourceExhausted) as refused:
        await anext(watching.watch("greedy", RUN, 1))
    assert refused.value.metadata == {"limit": "watches", "maximum": str(LIMIT), "namespace": "greedy"}
    other = asyncio.ensure_future(anext(watching.watch("other", RUN, 1)))
    await until(lambda: watching.budget.used("other") == 1)
    for task in (*begun, other):
        task.cancel()
    await asyncio.gather(*begun, other, return_exceptions=True)
    await until(lambda: watching.budget.used("greedy") == watching.budget.used("other") == 0)


RUN = "00000000-0000-7000-8000-000000000000"


class _SilentStore:
    """A store that does not answer."""

    async def events_of(self, run: RunKey, after: int, limit: int) -> None:
        await asyncio.Event().wait()


def test_shares_are_guaranteed_for_a_limited_number_of_namespaces() -> None:
    budget = NamespaceBudget("calls", 10, 2)
    for _ in range(10):
        budget.take("greedy")
    for number in range(limits.SHARES):
        for _ in range(2):
            budget.take(f"tenant-{number}")
    with pytest.raises(ResourceExhausted):
        budget.take("one more")  # the server itself is bounded
    with pytest.raises(ResourceExhausted):
        budget.take("greedy")
    budget.give_back("greedy")
    budget.take("one more")
    with pytest.raises(ResourceExhausted):
        budget.take("greedy")


def test_alone_a_namespace_has_the_whole_limit() -> None:
    budget = NamespaceBudget("calls", 10, 2)
    for _ in range(10):
        budget.take("alone")
    with pytest.raises(ResourceExhausted):
        budget.take("alone")

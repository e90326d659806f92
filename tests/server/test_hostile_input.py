"""Whatever is sent, the answer is never a crash: no INTERNAL, no UNKNOWN, and the server goes on."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kagzi.server.grpc.registration import SERVICES, path_of
from tests.server.stubs import TIMEOUT_S, Stubs

CALLS_PER_METHOD = 25
METHODS = [method for service in SERVICES for method in service.methods]
FORBIDDEN = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}

TEXTS = [
    "",
    "default",
    "greet",
    "\0",
    "a\x1b[2J",
    "ü" * 200,
    "x" * 5_000,
    "$input",
    "../../etc",
    "'; drop table runs; --",
]
INTEGERS = [0, 1, -1, 2, 7, 2**31 - 1, -(2**31)]
LONGS = [*INTEGERS, 2**63 - 1, -(2**63), 1_700_000_000]
FLOATS = [0.0, 1.0, -1.0, float("nan"), float("inf"), 1e308]

NOT_SENT = "Internal error from Core"  # gRPC's client about itself: the call was over before its request was written


class Sender:
    """Fills messages at random: with nonsense, and with ids that name something."""

    def __init__(self, seed: int, known: list[str]) -> None:
        self._rng = random.Random(seed)
        self._texts = [*TEXTS, *known * 3]
        self._makers: dict[int, Callable[[FieldDescriptor], Any]] = {
            FieldDescriptor.CPPTYPE_STRING: self._text,
            FieldDescriptor.CPPTYPE_BOOL: lambda _: self._rng.random() < 0.5,
            FieldDescriptor.CPPTYPE_INT32: lambda _: self._rng.choice(INTEGERS),
            FieldDescriptor.CPPTYPE_ENUM: lambda _: self._rng.choice([0, 1, 2, 3, 99]),
            FieldDescriptor.CPPTYPE_INT64: lambda _: self._rng.choice(LONGS),
            FieldDescriptor.CPPTYPE_UINT64: lambda _: self._rng.choice([0, 1, 2**64 - 1]),
            FieldDescriptor.CPPTYPE_DOUBLE: lambda _: self._rng.choice(FLOATS),
        }

    def message(self, descriptor: Descriptor, depth: int = 0) -> Message:
        message = GetMessageClass(descriptor)()
        for field in descriptor.fields:
            if self._rng.random() < 0.4 or depth > 4:
                continue
            self._fill(message, field, depth)
        return message

    def _fill(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            if value.message_type is None:
                getattr(message, field.name)[self._rng.choice(self._texts)] = self._makers[value.cpp_type](value)
        elif field.message_type is not None:
            inner = self.message(field.message_type, depth + 1)
            target = getattr(message, field.name)
            if field.is_repeated:
                target.append(inner)
            else:
                target.CopyFrom(inner)
        else:
            value = self._makers[field.cpp_type](field)
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)

    def _text(self, field: FieldDescriptor) -> str | bytes:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self._rng.randbytes(self._rng.choice([0, 3, 300]))
        return self._rng.choice(self._texts)


async def outcome(stubs: Stubs, path: str, data: list[bytes]) -> grpc.StatusCode:
    """What the server answered, or DEADLINE_EXCEEDED if it waits for more."""
    code = grpc.StatusCode.UNKNOWN
    for timeout_s in (0.7, 3.0, 12.0, 48.0):  # on a loaded machine a request may still lie here when its time is over
        code, details = await answer(stubs, path, data, timeout_s)
        if details != NOT_SENT:
            break
    return code


async def answer(stubs: Stubs, path: str, data: list[bytes], timeout_s: float) -> tuple[grpc.StatusCode, str | None]:
    call = stubs.channel.stream_stream(path)(iter(data), timeout=timeout_s)
    try:
        async for _ in call:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    except asyncio.CancelledError:
        if not call.done():
            raise
        return await call.code(), None  # gRPC cancels a call itself if it is over before its request was written
    return grpc.StatusCode.OK, None


@pytest.mark.parametrize("seed", [1])
async def test_nonsense_is_refused_and_nothing_breaks(stubs: Stubs, seed: int) -> None:
    task = await stubs.claim()
    worker_id = await stubs.register("greet")
    sender = Sender(seed, [task.run_id, worker_id])
    requests = [
        (path_of(method), sender.message(method.input_type)) for method in METHODS for _ in range(CALLS_PER_METHOD)
    ]
    limit = asyncio.Semaphore(20)

    async def send(path: str, request: Message) -> tuple[grpc.StatusCode, str, Message]:
        async with limit:
            return await outcome(stubs, path, [request.SerializeToString()]), path, request

    for code, path, request in await asyncio.gather(*(send(*request) for request in requests)):
        assert code not in FORBIDDEN, f"{path} answered {code} to\n{request}"
    started = await stubs.start(workflow_id=f"after-{seed}")
    assert (await stubs.get(started.run_id)).workflow_id == f"after-{seed}"


async def test_bytes_and_silence_are_refused_too(memory_stubs: Stubs) -> None:
    calls = [(path_of(method), data) for method in METHODS for data in ([], [b"\xff\xff"], [b"\x0a\x02\xc3\x28"])]
    codes = await asyncio.wait_for(asyncio.gather(*(outcome(memory_stubs, *call) for call in calls)), TIMEOUT_S)
    for code, call in zip(codes, calls, strict=True):
        assert code not in FORBIDDEN, f"{call} was answered {code}"

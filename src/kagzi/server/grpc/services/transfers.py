"""The part of WorkflowService that exports and imports runs."""

import asyncio
from collections.abc import AsyncIterator

import grpc

from ....core import limits
from ....core.errors import InvalidArgument, Unavailable
from ....engine import Transfers
from ....v1 import workflow_pb2 as pb
from ....wire.common import read_namespace
from ..answer_budget import Answers
from ..interceptor import RETRY_HINT, Context, read_message

SILENCE_S = 60.0
"""How long the client may be silent during a transfer."""


class TransferService:
    _transfers: Transfers
    _exports: Answers

    async def ExportWorkflow(self, context: Context) -> None:
        request = read_message(await context.read(), pb.ExportWorkflowRequest)
        namespace = read_namespace(request.namespace_id)
        buffer = bytearray()
        # Held for the whole export: data that was read stays in memory while the client is slow.
        async with self._exports.reserve(namespace, limits.EXPORT_RESERVED_BYTES):
            async for line in self._transfers.export(namespace, request.run_id):
                buffer += line
                while len(buffer) >= limits.MESSAGE_SOFT_BYTES:
                    await _write(context, bytes(buffer[: limits.MESSAGE_SOFT_BYTES]))
                    del buffer[: limits.MESSAGE_SOFT_BYTES]
            await _write(context, bytes(buffer))

    async def ImportWorkflow(self, context: Context) -> None:
        first = read_message(await _read(context), pb.ImportWorkflowRequest)
        answer = await self._transfers.import_run(read_namespace(first.namespace_id), _chunks(first, context))
        message = pb.ImportWorkflowResponse(run_id=answer.run_id, already_exists=answer.already_exists)
        await context.write(message.SerializeToString())


async def _write(context: Context, data: bytes) -> None:
    """Waits while the client is slow, for a limited time."""
    try:
        async with asyncio.timeout(SILENCE_S):
            await context.write(pb.ExportWorkflowResponse(json=data).SerializeToString())
    except TimeoutError:
        raise Unavailable(f"no data was read for {SILENCE_S:.0f} s. {RETRY_HINT}") from None


async def _read(context: Context) -> object:
    try:
        async with asyncio.timeout(SILENCE_S):
            return await context.read()
    except TimeoutError:
        raise Unavailable(f"no data was received for {SILENCE_S:.0f} s. {RETRY_HINT}") from None


async def _chunks(first: pb.ImportWorkflowRequest, context: Context) -> AsyncIterator[bytes]:
    yield first.json
    while (data := await _read(context)) is not grpc.aio.EOF:
        message = read_message(data, pb.ImportWorkflowRequest)
        if message.namespace_id not in ("", first.namespace_id):
            raise InvalidArgument(
                "namespace_id differs from that of the first message. Leave it empty after that.", field="namespace_id"
            )
        yield message.json

"""Shares metrics among the processes of one server (`--processes N`), over sockets in a directory that only they can
read. The process that serves the metrics page shows all of them."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ...engine.measurements.values import Samples
from ..peers import Peers, ProcessState

logger = logging.getLogger("kagzi.server")

ANSWER_S = 1.0
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Samples).decode


class Siblings:
    """`directory`: shared by all processes. `own`: the samples of this one."""

    def __init__(self, directory: Path, peers: Peers, own: Callable[[], Samples]) -> None:
        self._directory = directory
        self._peers = peers
        self._own = own

    async def serve(self) -> None:
        """Serves until cancelled."""
        path = self._path(self._peers.number)
        path.unlink(missing_ok=True)  # left by the process that had this number before
        async with await asyncio.start_unix_server(self._respond, path) as server:
            await server.serve_forever()

    async def ask(self) -> Mapping[str, Samples]:
        """The samples by process number, of those that respond in time."""
        numbers = [
            peer.number
            for peer in self._peers.processes
            if peer.number != self._peers.number and peer.state is ProcessState.READY
        ]
        answers = await asyncio.gather(*map(self._ask, numbers))
        return {str(number): samples for number, samples in zip(numbers, answers, strict=True) if samples is not None}

    async def _ask(self, number: int) -> Samples | None:
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await asyncio.open_unix_connection(self._path(number))
                try:
                    return _decode(await reader.read())
                finally:
                    writer.close()
        except (OSError, TimeoutError, msgspec.MsgspecError) as error:
            logger.warning("metrics of process %d are missing: %s", number, str(error) or "it does not answer")
            return None

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            writer.write(_encode(self._own()))
            await writer.drain()
        writer.close()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}.sock"

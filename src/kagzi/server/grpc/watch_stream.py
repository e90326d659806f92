"""Streams one run to one client as it changes."""

from contextlib import aclosing

from ...core.errors import ServerUnavailable
from ...engine import Watching
from ...v1 import workflow_pb2 as pb
from ...wire.common import read_namespace
from ...wire.events import write_watch
from .deadlines import Deadlines
from .interceptor import RETRY_HINT, Admit, Context, read_message
from .outbound_queue import WholeWrites
from .run_both import first_of


class WatchStream:
    """Ends when the run has ended. A client that asks again with the last seq continues there, on any server."""

    def __init__(self, watching: Watching, context: Context, deadlines: Deadlines, admit: Admit) -> None:
        self._watching = watching
        self._admit = admit
        self._context = context
        self._deadlines = deadlines
        self._writes = WholeWrites(context.write)

    async def serve(self) -> None:
        request = read_message(await self._context.read(), pb.WatchRequest)
        if await first_of(self._writes.run(self._send(request)), self._deadlines.ended()) == _STOPPED:
            raise ServerUnavailable(f"the server is stopping. {RETRY_HINT}")

    async def _send(self, request: pb.WatchRequest) -> None:
        namespace = read_namespace(request.namespace_id)
        await self._admit(namespace)
        async with aclosing(self._watching.watch(namespace, request.run_id, request.after_seq)) as changes:
            async for change in changes:
                for message in write_watch(change.mark, change.events):
                    await self._writes.write(message.SerializeToString())


_STOPPED = 1  # index of `ended()` among the coroutines of `first_of`

"""The rest of a history that did not fit into its claim."""

import asyncio
from collections.abc import Sequence

import grpc.aio

from ..core.errors import KagziError, Unavailable
from ..v1 import common_pb2
from ..v1 import worker_pb2 as pb
from .backoff import Backoff
from .connection import PATIENCE_S, Connection


async def fetch_history(
    connection: Connection, namespace: str, run_id: str, lease: common_pb2.Lease, after: int, *, known_seq: int = 0
) -> Sequence[pb.HistoryStep]:
    """Everything begun after `after`; results up to `known_seq` without output, error and details. A broken stream goes on where it
    broke off. Raises LeaseLost, Unavailable."""
    time = asyncio.get_running_loop().time
    give_up_at = time() + PATIENCE_S
    backoff = Backoff(connection.dice)
    steps: list[pb.HistoryStep] = []
    while True:
        link = connection.link
        request = pb.GetHistoryRequest(
            namespace_id=namespace, run_id=run_id, lease=lease, after=after, known_seq=known_seq
        )
        try:
            with link:
                async for page in link.workers.GetHistory(request, timeout=PATIENCE_S, metadata=link.metadata):
                    steps.extend(page.steps)
                    if not page.has_more:
                        return steps
                    if page.next_after > after:
                        after = page.next_after
                        give_up_at = time() + PATIENCE_S
            problem: KagziError = Unavailable(f"The history of run {run_id} ended before its end.")
        except grpc.aio.AioRpcError as error:
            problem = connection.explain(error)
        pause_s = backoff.next_s()
        if not isinstance(problem, Unavailable) or time() + pause_s > give_up_at:
            raise problem
        await connection.move(link)
        await asyncio.sleep(pause_s)

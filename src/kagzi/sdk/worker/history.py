"""The rest of a history that did not fit into its claim."""

import asyncio
from collections.abc import Sequence

import grpc.aio

from ...core.errors import KagziError
from ...v1 import common_pb2
from ...v1 import worker_pb2 as pb
from ..transport.connection import Connection
from ..transport.unreachable import Outage


async def fetch_history(
    connection: Connection, namespace: str, run_id: str, lease: common_pb2.Lease, after: int, *, known_seq: int = 0
) -> Sequence[pb.HistoryStep]:
    """All steps begun after `after`; results up to `known_seq` without output, error and details. A broken stream is
    resumed where it broke off. Raises LeaseLost, Unavailable."""
    steps: list[pb.HistoryStep] = []
    with connection.tries() as tries:
        while True:
            link = connection.link
            request = pb.GetHistoryRequest(
                namespace_id=namespace, run_id=run_id, lease=lease, after=after, known_seq=known_seq
            )
            problem: KagziError | Outage = connection.broken(f"ended the history of run {run_id} before its end")
            try:
                with link:
                    pages = link.workers.GetHistory(request, timeout=tries.next_timeout_s(), metadata=link.metadata)
                    async for page in pages:
                        steps.extend(page.steps)
                        if not page.has_more:
                            return steps
                        if page.next_after > after:
                            after = page.next_after
                            tries.succeeded()
            except grpc.aio.AioRpcError as error:
                problem = connection.problem_of(error)
            pause_s = tries.pause_s(problem)
            await connection.move(link)
            await asyncio.sleep(pause_s)

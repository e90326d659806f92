"""Kagzi's load generator: python kagzi_driver.py ADDRESS NAMESPACE [SLOTS]

With SLOTS the worker also runs in this process: for an embedded address.
"""

import sys

from protocol import run, serve

from kagzi import Kagzi, Worker
from kagzi.cli.bench.engine import KagziEngine
from kagzi.cli.bench.flows import FLOWS


async def main(address: str, namespace: str, slots: int | None) -> None:
    if slots is None:
        async with Kagzi.connect(address, namespace=namespace) as client:
            await serve(KagziEngine(client))
        return
    async with (
        Worker(address, namespace=namespace, workflows=list(FLOWS.values()), max_concurrent=slots),
        Kagzi.connect(address, namespace=namespace) as client,
    ):
        await serve(KagziEngine(client))


if __name__ == "__main__":
    run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None))

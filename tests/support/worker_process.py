"""A worker as a process of its own, for tests that kill it. Prints `worker ready` once it is connected.

    python -m tests.support.worker_process ADDRESS MODULE [--namespace NAME] [--max-concurrent N] [--build-id ID]

Serves every workflow that MODULE has at its top. Ends on SIGTERM and SIGINT like any worker.
"""

import argparse
import asyncio
import importlib
import signal
import sys

from kagzi import Worker, Workflow


def workflows_of(module: str) -> list[Workflow]:
    declared = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Workflow)]
    if not declared:
        sys.exit(f"{module} has no workflow")
    return declared


async def serve(options: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    worker = Worker(
        options.address,
        workflows=workflows_of(options.module),
        namespace=options.namespace,
        max_concurrent=options.max_concurrent,
        shutdown_grace=options.shutdown_grace,
        build_id=options.build_id,
    )
    async with worker:
        print("worker ready", flush=True)
        await stopping.wait()
    print("worker stopped", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("module")
    parser.add_argument("--namespace", default=None)
    parser.add_argument("--max-concurrent", type=int, default=100)
    parser.add_argument("--shutdown-grace", default="10s")
    parser.add_argument("--build-id", default="")
    asyncio.run(serve(parser.parse_args()))

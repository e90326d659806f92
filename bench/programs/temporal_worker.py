"""Temporal's worker: python temporal_worker.py ADDRESS SLOTS"""

import sys

from protocol import run
from temporal_flows import ACTIVITIES, WORKFLOWS
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


async def main(address: str, slots: int) -> None:
    worker = Worker(
        await Client.connect(address),
        task_queue="bench",
        workflows=WORKFLOWS,
        activities=ACTIVITIES,
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_cached_workflows=2 * slots,
        max_concurrent_workflow_tasks=slots,
        max_concurrent_local_activities=slots,
    )
    print("ready: worker", flush=True)
    await worker.run()


if __name__ == "__main__":
    run(main(sys.argv[1], int(sys.argv[2])))

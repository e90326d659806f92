"""One worker with 20 running runs of all kinds is sent home; another one takes over what it did not finish."""

import asyncio
import random
import re
import time
from typing import Any

import msgspec

from kagzi import Kagzi, Run
from tests.support.processes import Process, Processes

from .cluster import Cluster
from .drain_flows import GRACE_S, KINDS, mark_of

LEASE = ("--lease", "120s", "--heartbeat", "5s")  # so long that a run which waits for it to end is seen
RUNS = 20
SLACK_S = 20.0  # beyond the grace, on a loaded machine: handing back, goodbye, the end of the process
TAKEN_OVER_S = 60.0  # likewise, from the end of the worker to the end of the last run: retries and sleeps, but no lease
UNFINISHABLE = ("long", "blocking")  # steps that cannot finish in time
SERVES = re.compile(r"\bserves\b")


class Try(msgspec.Struct, frozen=True):
    """What came of one. From the signal, `gone_s` to the end of the process, `taken_over_s` to the last beginning
    elsewhere of a step that it had to give up; `rest_s`: from the end of the process to the end of the last run."""

    exit_code: int
    gone_s: float
    taken_over_s: float
    rest_s: float
    finished: int
    handed_back: int
    failed: int

    @property
    def in_time(self) -> bool:
        """Everything was finished, or in other hands, within the grace."""
        return self.well and self.taken_over_s <= GRACE_S

    @property
    def well(self) -> bool:
        return (
            self.exit_code == 0 and not self.failed and self.gone_s <= GRACE_S + SLACK_S and self.rest_s <= TAKEN_OVER_S
        )


async def serve(processes: Processes, cluster: Cluster, address: str | None = None) -> Process:
    """`kagzi worker`, as people run it."""
    process = await processes.module(
        *("kagzi", "worker", "tests.acceptance.drain_flows:worker"),
        *("--address", address or cluster.address),
        name="worker",
        KAGZI_TEST_LEDGER=str(cluster.ledger.path),
    )
    await process.wait_for(SERVES)
    return process


async def send_home(cluster: Cluster, client: Kagzi, leaver: Process, processes: Processes) -> tuple[Try, Process]:
    """Returns how it went, and the worker that took over."""
    mark_of(cluster.ledger.path, leaver.pid).touch()
    runs = [await client.start(KINDS[number % len(KINDS)]) for number in range(RUNS)]
    for run in runs:
        await _begun(cluster, run)
    heir = await serve(processes, cluster)
    await asyncio.sleep(random.random() * 0.3)  # at any moment of what they do
    signalled_at = time.monotonic()
    exit_code = await leaver.terminate(GRACE_S + 20.0)
    gone_at = time.monotonic()
    results = await asyncio.gather(*(run.result(timeout="60s") for run in runs), return_exceptions=True)
    ended_at = time.monotonic()
    begun = [entry for entry in cluster.ledger.entries() if entry.pid == heir.pid]
    taken_over = {entry.run_id for entry in begun} & {run.id for run in runs}
    abandoned = [entry.at - signalled_at for entry in begun if entry.step_id in UNFINISHABLE]
    outcome = Try(
        exit_code,
        gone_at - signalled_at,
        max(abandoned, default=0.0),
        ended_at - gone_at,
        finished=RUNS - len(taken_over),
        handed_back=len(taken_over),
        failed=sum(result != "done" for result in results),
    )
    return outcome, heir


async def _begun(cluster: Cluster, run: Run[Any]) -> None:
    await cluster.until(lambda entries: any(entry.run_id == run.id for entry in entries), f"{run.id} begun")


def words(outcome: Try) -> str:
    how = "well" if outcome.well else "NOT WELL"
    return (
        f"{how}: exit {outcome.exit_code} after {outcome.gone_s:.2f} s, {outcome.finished} finished, "
        f"{outcome.handed_back} "
        f"handed back (begun elsewhere after {outcome.taken_over_s:.2f} s), the last run ended "
        f"{outcome.rest_s:.2f} s after "
        f"that, {outcome.failed} failed"
    )

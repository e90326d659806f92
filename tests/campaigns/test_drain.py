"""SIGTERM of a worker with 20 running runs, 100 times: short and long async steps, steps that block in threads, sleeps,
waits for a retry. In at least 95 of 100 tries all are finished or in other hands within the grace, and no run waits for
a lease to end."""

from pathlib import Path

import pytest

from kagzi.cli.bench.load import percentile
from tests.acceptance.cluster import Cluster
from tests.acceptance.drain_flows import GRACE_S
from tests.acceptance.draining import LEASE, RUNS, Try, send_home, serve, words
from tests.support.processes import Processes

from .figures import Figures, number

SLACK_S = 2.5  # beyond the grace, on a quiet machine: handing back, goodbye, the end of the process
TAKEN_OVER_S = 8.0  # likewise, from the end of the worker to the end of the last run: retries and sleeps, but no lease

TRIES = int(number("DRAIN_TRIES", 100))
NEEDED = 0.95


@pytest.mark.parametrize("setup", ["sqlite", "two-servers"])
@pytest.mark.timeout(TRIES * 30 + 120)
async def test_drain(setup: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    figures = Figures("drain")
    if figures.known(setup):
        return
    database = f"sqlite:///{tmp_path}/kagzi.db" if setup == "sqlite" else request.getfixturevalue("postgres_url")
    tries: list[Try] = []
    async with Processes(tmp_path) as processes:
        cluster = Cluster(processes, database, tmp_path, *LEASE)
        for _ in range(1 if setup == "sqlite" else 2):
            await cluster.add_server()
        leaver = await serve(processes, cluster)
        async with cluster.client() as client:
            for each in range(TRIES):
                outcome, leaver = await send_home(cluster, client, leaver, processes)
                tries.append(outcome)
                print(f"{setup} {each + 1}: {'in time' if outcome.in_time else 'LATE'}, {words(outcome)}")
    in_time = sum(outcome.in_time for outcome in tries)
    figures.put(
        setup,
        {
            "tries": TRIES,
            "runs_in_hand": RUNS,
            "grace_s": GRACE_S,
            "in_time": in_time,
            "well": sum(outcome.well for outcome in tries),
            "failed_runs": sum(outcome.failed for outcome in tries),
            "finished": sum(outcome.finished for outcome in tries),
            "handed_back": sum(outcome.handed_back for outcome in tries),
            "taken_over_p50_s": round(percentile([outcome.taken_over_s for outcome in tries], 50), 3),
            "taken_over_max_s": round(max(outcome.taken_over_s for outcome in tries), 3),
            "gone_max_s": round(max(outcome.gone_s for outcome in tries), 3),
        },
    )
    assert not sum(outcome.failed for outcome in tries)
    assert in_time >= NEEDED * TRIES
    assert all(outcome.gone_s <= GRACE_S + SLACK_S and outcome.rest_s <= TAKEN_OVER_S for outcome in tries)
    assert all(outcome.well for outcome in tries), (
        "a run waited for a lease to end, or the worker did not leave in order"
    )

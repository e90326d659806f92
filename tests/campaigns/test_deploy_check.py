"""`kagzi check` on a server with 1,000 open runs of an old version, against changed code: exactly the runs that
diverge, in under 30 s."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.deploys import CHANGED, open_runs, write_code
from tests.support.kagzi_process import running

from .figures import Figures, number

RUNS = int(number("RUNS", 1_000))
LIMIT_S = 30.0
READY_S = 60.0


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_thousand_open_runs(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    figures = Figures("deploy-check")
    if figures.known(store) is not None:
        return
    url = f"sqlite:///{tmp_path}/kagzi.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    counts = {"shipped": RUNS * 36 // 100, "charged": RUNS * 30 // 100, "invoiced": RUNS * 20 // 100}
    counts["reported"] = counts["old"] = RUNS * 2 // 100
    counts["waiting"] = RUNS - sum(counts.values())
    write_code(tmp_path, CHANGED)
    with running("server", "--db", url, "--listen", "127.0.0.1:0", "--http", "off") as server:
        address = server.says(r"kagzi server ready .*?grpc=(\S+)", READY_S)[1]
        runs = asyncio.run(open_runs(address, counts))
        arguments = (sys.executable, "-m", "kagzi", "check", "shop.py", "--jsonl", "--address", address)
        began = time.perf_counter()
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        took_s = time.perf_counter() - began
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    diverged = {row["run_id"] for row in rows if row["verdict"] == "diverges"}
    figures.put(
        store,
        {"open_runs": sum(map(len, runs.values())), "diverged": len(diverged), "took_s": took_s, "limit_s": LIMIT_S},
    )
    assert done.returncode == 1, done.stderr
    assert diverged == runs["shipped"]
    assert len(rows) == len(runs["shipped"]) + len(runs["reported"]) + len(runs["old"])
    assert took_s < LIMIT_S

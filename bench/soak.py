"""Half of the peak load for minutes: does throughput hold, do memory and the store grow? Kagzi only."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg

from bench.compare import database_of
from bench.document import Document, new_document
from bench.engines.kagzi import KagziPostgres, KagziSqlite
from bench.launch import EngineError, Launcher
from bench.metering import TreeMeter
from bench.workloads import Plan

INTERVAL_S = 30.0
PEAK_SECONDS = 10.0

_STORE = """
select pg_database_size(current_database()) as database_bytes,
       (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint as wal_bytes,
       (select coalesce(sum(n_live_tup), 0)::bigint from pg_stat_user_tables) as live_rows,
       (select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables) as dead_rows
"""


def soak(store: str, seconds: float, say: Callable[[str], None]) -> Document:
    """Figures for every INTERVAL_S. Raises EngineError."""
    engine_type = KagziPostgres if store == "postgresql" else KagziSqlite
    document = new_document([engine_type], [], Plan(), rounds=1, scale_rounds=0)
    directory = Path(tempfile.mkdtemp(prefix="kagzi-soak-"))
    try:
        with database_of(engine_type) as (url, database_pid), Launcher(directory) as launcher:
            engine = engine_type(launcher, url)
            engine.start()
            engine.driver.call("throughput", in_flight=100, seconds=3.0)
            peak = engine.driver.call("throughput", in_flight=100, seconds=PEAK_SECONDS)
            rate = peak["operations"] / peak["seconds"] / 2
            say(f"peak {rate * 2:,.0f} steps/s; {rate:,.0f} steps/s for {seconds:,.0f} s")
            document["peak_steps_per_second"] = round(rate * 2)
            roots = {**launcher.roots, **({"database": database_pid} if database_pid else {})}
            meter = TreeMeter(roots)
            began, steps = time.monotonic(), 0
            while (elapsed := time.monotonic() - began) < seconds:
                span = min(INTERVAL_S, seconds - elapsed)
                used = meter.cpu()
                answer = engine.driver.call("steady", steps_per_second=rate, seconds=span)
                steps += answer["operations"]
                record = _record(answer, meter, used, _store(store, url, directory))
                record = {
                    "engine": engine.name,
                    "workload": "soak",
                    "error": None,
                    "at": round(elapsed + span),
                    **record,
                }
                document["results"].append({**record, "steps": steps})
                say(f"  {record['at']:>5} s  {record['steps_per_second']:>8,.0f} steps/s  p99 {record['p99']:.1f} ms")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if not document["results"]:
        raise EngineError("a soak needs more than no time")
    return document


def _record(answer: dict[str, Any], meter: TreeMeter, used: dict[str, float], store: dict[str, int]) -> dict[str, Any]:
    spent = meter.cpu_since(used)
    return {
        "steps_per_second": round(answer["operations"] / answer["seconds"]),
        "p50": round(answer["p50"], 3),
        "p99": round(answer["p99"], 3),
        "in_flight_at_the_end": answer["in_flight_at_the_end"],
        "cpu_seconds_per_1000": {name: round(cpu / answer["operations"] * 1_000, 5) for name, cpu in spent.items()},
        "memory_mb": {name: round(megabytes, 1) for name, megabytes in meter.memory_mb().items()},
        **store,
    }


def _store(store: str, url: str, directory: Path) -> dict[str, int]:
    if store == "sqlite":
        sizes = {path.name: path.stat().st_size for path in directory.glob("kagzi.db*")}
        return {"database_bytes": sizes.get("kagzi.db", 0), "wal_bytes": sizes.get("kagzi.db-wal", 0)}

    async def ask() -> dict[str, int]:
        connection = await asyncpg.connect(url)
        try:
            return dict(await connection.fetchrow(_STORE))
        finally:
            await connection.close()

    return asyncio.run(ask())

"""Trouble with the disk, with other processes, and with one command of many: reported, and survived."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.errors import Unavailable
from kagzi.core.records import Payload, RunKey
from kagzi.core.run.commands import StartRun
from kagzi.core.run.outcomes import Recorded, Started
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.write.fast_path import Writer
from tests.store.conformance.verbs import StoreHarness, begin, complete, refused, the
from tests.support.providers import LoadedRng


def writer_of(store: SqliteStore) -> Writer:
    assert store._writer is not None
    return store._writer


async def test_a_full_disk_is_reported_and_passes(store: SqliteStore, harness: StoreHarness) -> None:
    holding = await harness.running()
    database = writer_of(store).database
    pages = (await store._writing.call(database.execute, "PRAGMA page_count"))[0][0]
    await store._writing.call(database.execute, f"PRAGMA max_page_count = {pages + 2}")
    big = Payload(b"x" * 1_000_000)
    with pytest.raises(Unavailable, match="full"):
        await harness.write(begin(holding, "big"), complete(holding, "big", big))
    await store._writing.call(database.execute, "PRAGMA max_page_count = 1000000")
    outcomes = await harness.write(begin(holding, "big"), complete(holding, "big", big))
    the(Recorded, outcomes[1])
    assert [step.step_id for step in (await harness.steps(holding.run)).values()] == ["big"]


async def test_a_file_locked_by_another_process_is_unavailable_and_comes_back(
    path: str, store: SqliteStore, harness: StoreHarness
) -> None:
    holding = await harness.running()
    await store._writing.call(writer_of(store).database.execute, "PRAGMA busy_timeout = 20")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"):
        await harness.write(begin(holding, "a"))
    other.execute("ROLLBACK")
    other.close()
    the(Recorded, (await harness.write(begin(holding, "a"), complete(holding, "a")))[1])


async def test_what_a_rollback_undid_is_not_remembered(store: SqliteStore, harness: StoreHarness) -> None:
    # The fence's seq went up in memory; after the rollback the next write must start from what the file says.
    holding = await harness.running()
    commit = writer_of(store).database.commit

    def fail() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    writer_of(store).database.commit = fail  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="I/O"):
        await harness.write(begin(holding, "a"), complete(holding, "a"))
    writer_of(store).database.commit = commit  # type: ignore[method-assign]
    recorded = the(Recorded, (await harness.write(begin(holding, "a"), complete(holding, "a")))[1])
    assert recorded.seq == 2


@pytest.mark.parametrize("bad", ["\0", "\ud800"])
async def test_one_unfit_command_among_many_is_refused_alone(harness: StoreHarness, bad: str) -> None:
    holding = await harness.running()
    batch = [begin(holding, f"s{number}") for number in range(100)]
    batch[41] = begin(holding, "s41", name=f"charge{bad}")
    outcomes = await harness.write(*batch)
    error = refused(outcomes[41], ErrorCode.INVALID_ARGUMENT)
    assert "name" in error.message
    assert sorted(await harness.steps(holding.run)) == sorted(f"s{n}" for n in range(100) if n != 41)


async def test_a_number_too_large_for_the_store_is_refused_alone(harness: StoreHarness) -> None:
    starts = [
        StartRun(
            run=RunKey("default", harness.ids.run_id(harness.now)),
            workflow_id=f"w{number}",
            workflow_type="hello",
            request_id=f"r{number}",
            priority=1 << 80 if number == 3 else 0,
        )
        for number in range(8)
    ]
    outcomes = await harness.write(*starts)
    refused(outcomes[3], ErrorCode.INVALID_ARGUMENT)
    assert [type(outcome) for number, outcome in enumerate(outcomes) if number != 3] == [Started] * 7


def test_an_acknowledged_write_outlives_a_kill(tmp_path: Path) -> None:
    path = str(tmp_path / "kagzi.db")
    child = textwrap.dedent("""
        import asyncio, os, signal, sys
        from kagzi.store.sqlite import SqliteMigrator, SqliteStore
        from tests.store.conformance.verbs import StoreHarness, begin, complete
        from tests.support.clock import FakeClock
        from tests.support.providers import CountingIds, LoadedRng

        async def main():
            await SqliteMigrator(sys.argv[1]).migrate()
            store = SqliteStore(sys.argv[1], rng=LoadedRng())
            await store.open()
            harness = StoreHarness(store, FakeClock(), CountingIds())
            holding = await harness.running(workflow_id="kept")
            await harness.write(begin(holding, "a"), complete(holding, "a", "precious"))
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    ended = subprocess.run([sys.executable, "-c", child, path], env=environment, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert asyncio.run(output_of(path, "kept", "a")) == Payload(b"precious")


async def output_of(path: str, workflow_id: str, step_id: str) -> Payload | None:
    store = SqliteStore(path, rng=LoadedRng())
    await store.open()
    record = await store.get_run("default", workflow_id=workflow_id)
    step = None if record is None else await store.get_step(record.run, step_id)
    await store.close()
    return None if step is None else step.output

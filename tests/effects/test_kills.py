"""A worker is killed between the user's commit and Kagzi's: the next attempt reads what is committed. `make effects`
does it 200 times."""

from pathlib import Path

from tests.support.migrated import copy_migrated_sqlite
from tests.support.processes import Processes

from .killing import kill_workers, orders
from .outbox_killing import kill_servers


async def test_each_effect_is_there_once_however_its_workers_end(postgres_url: str, tmp_path: Path) -> None:
    copy_migrated_sqlite(tmp_path / "kagzi.db")
    database, todo = f"sqlite:///{tmp_path}/kagzi.db", list(orders(between=2, inside=0, others=1))
    async with Processes(tmp_path) as processes:
        figures = await kill_workers(processes, database, postgres_url, tmp_path, todo, workers=2, plain=False)
    assert figures.killed_between == 2, "no kill hit: this test has shown nothing"
    assert figures.read >= 2, "nobody came to what was committed before"
    assert (figures.doubles, figures.missing, figures.wrong_receipts) == (0, 0, 0)


async def test_each_start_becomes_one_run_however_the_servers_end(
    postgres_url: str, migrated_postgres_url: str, tmp_path: Path
) -> None:
    async with Processes(tmp_path) as processes:
        figures, expected = await kill_servers(processes, migrated_postgres_url, postgres_url, kills=1)
    assert figures.kills_between == 1, "no kill hit a server between the two commits: this test has shown nothing"
    assert not figures.missing(expected)
    assert sorted(figures.runs) == sorted(expected)

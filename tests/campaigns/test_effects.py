"""200 times kill -9 of a worker between the user's commit and Kagzi's, with each driver: every effect is there once.
And the same without kagzi.effect, to show that a double would be seen. And 50 times kill -9 of a server between its
start of runs from an outbox and the deletion of their rows: every start becomes one run."""

from pathlib import Path

import pytest

from tests.effects.killing import kill_workers, orders
from tests.effects.outbox_killing import kill_servers
from tests.support.processes import Processes

from .figures import Figures, number

KILLS = int(number("EFFECT_KILLS", 200))
INSIDE = KILLS // 4
OTHERS = KILLS // 4
SERVER_KILLS = int(number("OUTBOX_KILLS", 50))
PLAIN = int(number("EFFECT_PLAIN_KILLS", 15))


@pytest.mark.timeout(KILLS * 30 + 300)
@pytest.mark.parametrize("plain", [False, True], ids=["recorded", "plain"])
async def test_effects(plain: bool, postgres_url: str, migrated_postgres_url: str, tmp_path: Path) -> None:
    kept = Figures("effects")
    part = "without kagzi.effect" if plain else "kagzi.effect"
    if kept.known(part):
        return
    planned = orders(PLAIN, 0, 0) if plain else orders(KILLS, INSIDE, OTHERS)
    todo = [order for order in planned if not (plain and order.driver.endswith("-sync"))]
    between = sum(order.killed == "between" for order in todo)
    async with Processes(tmp_path) as processes:
        figures = await kill_workers(
            processes, migrated_postgres_url, postgres_url, tmp_path, todo, workers=2, plain=plain
        )
    kept.put(
        part,
        {
            "orders": figures.orders,
            "processes_killed": figures.processes,
            "killed_between_commits": figures.killed_between,
            "killed_before_commit": figures.killed_inside,
            "results_read": figures.read,
            "doubles": figures.doubles,
            "missing": figures.missing,
            "wrong_receipts": figures.wrong_receipts,
        },
    )
    assert figures.killed_between == between
    assert figures.processes == sum(bool(order.killed) for order in todo)
    assert figures.missing == 0
    if plain:
        assert figures.doubles == between, "without an effect each kill is a double: this campaign would see one"
    else:
        assert figures.read >= between, "not every attempt after a kill came to what was committed"
        assert (figures.doubles, figures.wrong_receipts) == (0, 0)


@pytest.mark.timeout(SERVER_KILLS * 30 + 300)
async def test_outbox(postgres_url: str, migrated_postgres_url: str, tmp_path: Path) -> None:
    kept = Figures("effects")
    if kept.known("outbox"):
        return
    async with Processes(tmp_path) as processes:
        figures, expected = await kill_servers(processes, migrated_postgres_url, postgres_url, kills=SERVER_KILLS)
    kept.put(
        "outbox",
        {
            "starts_committed": figures.committed,
            "starts_rolled_back": figures.rolled_back,
            "servers_killed": figures.kills,
            "killed_between_commits": figures.kills_between,
            "runs": len(figures.runs),
            "doubles": figures.doubles,
            "missing": len(figures.missing(expected)),
        },
    )
    assert figures.kills_between == SERVER_KILLS
    assert sorted(figures.runs) == sorted(expected)

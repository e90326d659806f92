"""A synchronous standby has whatever was acknowledged: PostgreSQL is killed 20 times while commits wait for it, and
started again in place; then it is gone, and the standby takes over. The same with the barrier taken out, which must be
seen."""

from pathlib import Path

import pytest

from kagzi import Kagzi
from tests.acceptance.cluster import TIMINGS
from tests.support.ledger import Ledger
from tests.support.postgres import Databases
from tests.support.processes import Processes
from tests.support.standby import Pair

from . import flows
from .figures import Figures, number
from .standby import Campaign

ROUNDS = int(number("STANDBY_ROUNDS", 20))
UNGUARDED_ROUNDS = 10  # or until something is acknowledged that the standby does not have
NEEDED = 0.9  # of the kills must hit


@pytest.mark.parametrize("program", ["kagzi", "tests.support.unguarded"], ids=["barrier", "barrier-taken-out"])
@pytest.mark.timeout(ROUNDS * 60 + 300)
async def test_standby(program: str, tmp_path: Path) -> None:
    figures = Figures("standby")
    guarded = program == "kagzi"
    part = "barrier" if guarded else "barrier taken out"
    if figures.known(part):
        return
    rounds = ROUNDS if guarded else UNGUARDED_ROUNDS
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with Pair() as pair:
        await pair.attach()
        database = Databases(pair.url).create()
        async with Processes(tmp_path) as processes:
            server = await processes.server(database, *TIMINGS, program=program)
            await processes.worker(server.grpc, flows.__name__, KAGZI_TEST_LEDGER=str(ledger.path))
            async with Kagzi.connect(server.grpc) as client:
                campaign = Campaign(pair, database, ledger, client, window_s=3 if guarded else 30)
                for each in range(rounds):
                    await campaign.round()
                    done = campaign.rounds[-1]
                    alone = done.acknowledged_alone.count
                    print(
                        f"{part} {each + 1}: waiting {done.waiting}, unreplicated {done.unreplicated}, acknowledged "
                        f"{alone}"
                    )
                    if each + 1 == rounds or alone:
                        break
                    await campaign.recover()
                await campaign.stop()
            acknowledged = campaign.acknowledged()
            lost = await campaign.lost()
            await server.end()
            finished = 0
            if guarded:
                await processes.server(pair.on_standby(database), *TIMINGS, "--listen", server.grpc, program=program)
                async with Kagzi.connect(server.grpc) as client:
                    finished = await campaign.finish(client)
    figures.put(
        part,
        {
            "kills": len(campaign.rounds),
            "commits_waiting_when_killed": sum(each.waiting for each in campaign.rounds),
            "visible_but_unreplicated": sum(each.unreplicated for each in campaign.rounds),
            "kills_that_hit": sum(each.unreplicated > 0 for each in campaign.rounds),
            "acknowledged": dict(zip(acknowledged._fields, map(len, acknowledged), strict=True)),
            "acknowledged_before_replicated": sum(each.acknowledged_alone.count for each in campaign.rounds),
            "acknowledged_and_lost": lost.count,
            "finished_on_the_standby": finished,
        },
    )
    hit = sum(each.unreplicated > 0 for each in campaign.rounds)
    assert hit >= NEEDED * len(campaign.rounds), (
        f"{len(campaign.rounds) - hit} kills showed nothing that the standby did not have"
    )
    if guarded:
        assert not lost.count, lost
        assert not any(each.acknowledged_alone.count for each in campaign.rounds)
    else:
        assert lost.count, "without the barrier nothing was lost: this campaign would not notice"

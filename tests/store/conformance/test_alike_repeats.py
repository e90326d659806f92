"""Every command of a worker, in every state of a step and of its run, by its holder and by the one before: both stores
answer alike, word for word. What test_alike finds by chance is gone through here."""

from collections.abc import Callable, Iterator

import pytest

from kagzi.core.records import RunLease
from kagzi.core.run.commands import Command

from .test_alike import Player, outcome_of, two_players
from .verbs import (
    AT_ONCE,
    StoreHarness,
    acknowledge_cancel,
    beat,
    begin,
    complete,
    complete_run,
    diverged,
    fail,
    fail_run,
    finish,
    hand_back,
    leased,
    park,
    patch,
    race,
    record,
    sleep,
    wait_signal,
)

Make = Callable[[RunLease], Command]

STEPS: dict[str, tuple[Make, ...]] = {
    "nothing": (),
    "begun": (lambda h: begin(h, "x", retry=AT_ONCE),),
    "once": (lambda h: begin(h, "x", once=True),),
    "completed": (lambda h: begin(h, "x"), lambda h: complete(h, "x")),
    "waits for its retry": (lambda h: begin(h, "x", retry=AT_ONCE), lambda h: fail(h, "x")),
    "begun again": (
        lambda h: begin(h, "x", retry=AT_ONCE),
        lambda h: fail(h, "x"),
        lambda h: begin(h, "x", 2),
    ),
    "failed": (
        lambda h: begin(h, "x", retry=AT_ONCE),
        *(lambda h: begin(h, "x", 0), lambda h: fail(h, "x", attempt=0)) * 3,
    ),
    "abandoned": (lambda h: begin(h, "x"), lambda h: race(h, "race", "y", "x")),
    "sleeps": (lambda h: sleep(h, "x", s=60),),
    "slept": (lambda h: sleep(h, "x", until=1),),
    "sleep abandoned": (lambda h: sleep(h, "x", s=60), lambda h: race(h, "race", "y", "x")),
    "waits": (lambda h: wait_signal(h, step_id="x"),),
    "wait abandoned": (lambda h: wait_signal(h, step_id="x"), lambda h: race(h, "race", "y", "x")),
    "patched": (lambda h: patch(h, "x"),),
    "raced": (lambda h: race(h, "x", "winner"),),
}

COMMANDS: dict[str, Make] = {
    **{f"begin {n}": lambda h, n=n: begin(h, "x", n, retry=AT_ONCE) for n in (0, 1, 2, 3)},
    "begin once": lambda h: begin(h, "x", once=True),
    **{f"record {n}": lambda h, n=n: record(h, "x", attempt=n, retry=AT_ONCE) for n in (0, 1, 2, 3)},
    "record in cleanup": lambda h: record(h, "x", cleanup=True),
    **{f"complete {n}": lambda h, n=n: complete(h, "x", attempt=n) for n in (0, 1, 2)},
    **{f"fail {n}": lambda h, n=n: fail(h, "x", attempt=n) for n in (0, 1, 2, 3)},
    **{f"beat {n}": lambda h, n=n: beat(h, "x", "1", n) for n in (0, 1, 2)},
    "sleep": lambda h: sleep(h, "x", s=60),
    "finish": lambda h: finish(h, "x"),
    "wait": lambda h: wait_signal(h, step_id="x"),
    "patch": lambda h: patch(h, "x"),
    "race": lambda h: race(h, "x", "winner"),
    "other race": lambda h: race(h, "x", "loser"),
    "park": park,
    "complete run": complete_run,
    "fail run": fail_run,
    "release": hand_back,
    "acknowledge": acknowledge_cancel,
    "diverge": diverged,
}

LEAVINGS: dict[str, Make] = {
    "released": hand_back,
    "parked": park,
    "completed": complete_run,
    "failed": fail_run,
    "diverged": diverged,
}

SITUATIONS = ("held", "taken over, by the new holder", "taken over, by the old one", "lost", "cancelled", *LEAVINGS)


class Case:
    def __init__(self, state: str, command: str) -> None:
        self.name = f"{state}: {command}"
        self.made = STEPS[state]
        self.command = COMMANDS[command]


CASES = [Case(state, command) for state in STEPS for command in COMMANDS]


async def claim_all(harness: StoreHarness) -> dict[str, RunLease]:
    claims: dict[str, RunLease] = {}
    while claimed := await harness.claim(limit=100, until=harness.now + 3_600_000_000):
        claims |= {one.run.run_id: leased(one) for one in claimed}
    return claims


def batches(commands: list[Command]) -> Iterator[list[Command]]:
    for start in range(0, len(commands), 100):
        yield commands[start : start + 100]


async def say(harness: StoreHarness, commands: list[Command]) -> list[object]:
    return [outcome_of(outcome) for batch in batches(commands) for outcome in await harness.write(*batch)]


async def answers(player: Player, situation: str) -> list[object]:
    """What each case comes to."""
    harness = player.harness
    runs = await harness.start_many(len(CASES))
    first = await claim_all(harness)
    old = [first[run.run_id] for run in runs]
    for place in range(max(len(case.made) for case in CASES)):
        pairs = [(case, token) for case, token in zip(CASES, old, strict=True) if place < len(case.made)]
        await say(harness, [case.made[place](token) for case, token in pairs])
    harness.clock.advance(s=1)
    tokens = old
    if situation in LEAVINGS:
        await say(harness, [LEAVINGS[situation](token) for token in old])
    elif situation == "cancelled":
        for run in runs:
            await harness.cancel(run, "enough")
    elif situation != "held":
        harness.clock.advance(s=7_200)
        while (await harness.fire(claim_cap=100)).more:
            pass
        if situation != "lost":
            new = await claim_all(harness)
            tokens = old if situation.endswith("old one") else [new[run.run_id] for run in runs]
    return await say(harness, [case.command(token) for case, token in zip(CASES, tokens, strict=True)])


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_both_stores_answer_alike(migrated_postgres: str, situation: str) -> None:
    async with two_players(migrated_postgres) as (sqlite, postgres):
        one, other = await answers(sqlite, situation), await answers(postgres, situation)
    unlike = [
        f"{case.name}\n    SQLite     {left}\n    PostgreSQL {right}"
        for case, left, right in zip(CASES, one, other, strict=True)
        if left != right
    ]
    assert not unlike, f"{len(unlike)} of {len(CASES)}, {situation}:\n" + "\n".join(unlike)

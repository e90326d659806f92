"""Histories recorded by a real server: embedded, in this process, with a real worker."""

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple

from kagzi import Context, Kagzi, PreconditionFailed, Run, StepKind, StepStatus, Worker
from kagzi.testing import History
from tests.support.changing_programs import ChangingPlayer
from tests.support.random_programs import PROCEED, Durations, Program, World
from tests.support.timeouts import LOADED_MACHINE

DURATIONS = Durations(long="30ms")
SIGNALS = 8  # that are there before a program asks for them


class Recorded(NamedTuple):
    """A run that has ended, and what its code was told: what `now` and `random` said, by what `uuid` said then."""

    history: History
    result: Any
    facts: dict[str, tuple[str, str]]


class NotingPlayer(ChangingPlayer):
    """Plays marked programs, and notes what the context says before and after each action."""

    facts: dict[str, tuple[str, str]]

    def note(self, ctx: Context) -> None:
        uuid, facts = str(ctx.uuid()), (ctx.now().isoformat(), str(ctx.random()))
        assert self.facts.setdefault(uuid, facts) == facts, "a replay on the worker was told something else"

    async def play(self, ctx: Context, program: Program) -> list[Any]:
        values: list[Any] = []
        for action in program:
            self.note(ctx)
            values += await super().play(ctx, [action])
        self.note(ctx)
        return values


async def record(player: NotingPlayer, seed: int, namespace: str) -> Recorded:
    """Let a worker execute the program on the server of this process."""
    player.world, player.facts = World(seed, DURATIONS), {}
    async with Kagzi.connect(":memory:", namespace=namespace) as client:
        run = await client.start(player.root)
        for _ in range(SIGNALS):
            await run.signal(PROCEED, "went")
        async with Worker(":memory:", namespace=namespace, workflows=player.workflows):
            result = await run.result(timeout=LOADED_MACHINE)
        history = await History.fetch(client, run)
    return Recorded(history, result, player.facts)


async def ended(run: Run[Any]) -> Any:
    """Its result. Sleeps are woken: nobody is to wait for them."""
    result = asyncio.ensure_future(run.result(timeout=LOADED_MACHINE))
    while not result.done():
        await asyncio.wait({result}, timeout=0.05)
        for step in [] if result.done() else await run.steps():
            if step.kind is StepKind.SLEEP and step.status is StepStatus.RUNNING:
                with suppress(PreconditionFailed):  # it has ended meanwhile
                    await run.wake(step.id)
    return await result

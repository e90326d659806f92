"""The shortest scenario that still fails: operations are dropped, then commands of its batches, as long as it does."""

from collections.abc import Iterator

from .scenarios import Batch, Scenario
from .twins import Difference, Twins

MOST_PLAYS = 600


async def shrink(twins: Twins, scenario: Scenario, smallest: Difference) -> Difference:
    """The difference that the shortest scenario ends with; its notes show the scenario."""
    plays = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(scenario):
            plays += 1
            if plays > MOST_PLAYS:
                return smallest
            try:
                await twins.play(candidate)
            except Difference as difference:
                scenario, smallest, smaller = candidate, difference, True
                break
    return smallest


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    size = len(scenario) // 2
    while size:
        for start in range(len(scenario) - size, -1, -size):
            yield scenario[:start] + scenario[start + size :]
        size //= 2
    for place, operation in enumerate(scenario):
        if isinstance(operation, Batch) and len(operation.drafts) > 1:
            for n in range(len(operation.drafts)):
                fewer = Batch(operation.drafts[:n] + operation.drafts[n + 1 :])
                yield [*scenario[:place], fewer, *scenario[place + 1 :]]

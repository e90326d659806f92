"""ctx.parallel and ctx.map while they are awaited."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..ledger import RACE
from ..run_execution import RunExecution
from ..scopes import AnyCoroutine
from .bodies import StepOptions
from .branches import Branches, settle
from .races import decide
from .steps import execute_step, scope_of


async def execute_parallel(
    run: RunExecution, group: str, coroutines: Sequence[AnyCoroutine], *, collect: bool
) -> list[Any]:
    """The values in the order given. Fail-fast: the first error is raised when all others have ended; collect: errors
    stand beside values."""
    if not coroutines:
        return []
    opened = Branches(run, scope_of(run), group, {str(index): each for index, each in enumerate(coroutines)})
    tasks = list(opened.tasks.values())
    try:
        await asyncio.wait(tasks, return_when=asyncio.ALL_COMPLETED if collect else asyncio.FIRST_EXCEPTION)
        failed = None if collect else _failed(opened)
        if failed is not None and any(not task.done() for task in tasks):
            await decide(run, group, failed, opened, run.take(group, RACE), if_open=True)
    except BaseException:
        await opened.give_up()
        raise
    await settle(tasks)
    if failed is not None:
        tasks[int(failed)].result()
    return [_collected(task) if collect else task.result() for task in tasks]


def _failed(opened: Branches) -> str | None:
    for name, task in opened.tasks.items():
        if task.done() and (task.cancelled() or task.exception() is not None):
            return name
    return None


def _collected(task: "asyncio.Task[Any]") -> Any:
    error = None if task.cancelled() else task.exception()
    return error if isinstance(error, Exception) else task.result()


async def execute_map(  # noqa: PLR0917  the parts of one call
    run: RunExecution,
    group: str,
    ids: Sequence[str],
    items: Sequence[Any],
    fn: Callable[..., Any],
    options: StepOptions,
    limit: int,
) -> list[Any]:
    """One step for each item, `limit` at a time; values in the order of the items."""
    values: list[Any] = [None] * len(items)
    indexes = iter(range(len(items)))

    async def work(indexes: Iterator[int]) -> None:
        for index in indexes:
            values[index] = await execute_step(run, ids[index], options, fn, (items[index],), {})

    await execute_parallel(run, group, [work(indexes) for _ in range(min(limit, len(items)))], collect=False)
    return values

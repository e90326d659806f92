"""ctx.parallel and ctx.map while they are awaited."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ....core.errors import StepError
from ..ledger import RACE
from ..run_execution import RunExecution
from ..scopes import AnyCoroutine
from .bodies import StepOptions
from .branches import Branches, settle
from .races import decide
from .steps import execute_step, scope_of


async def execute_parallel(
    run: RunExecution, group: str, coroutines: Sequence[AnyCoroutine], *, collect: bool, limit: int | None = None
) -> list[Any]:
    """The values in the given order, `limit` at a time. Fail-fast: the first error is raised when all other branches
    have ended, and no further ones begin; collect: errors are returned in place of values."""
    if not coroutines:
        return []
    by_name = {str(index): each for index, each in enumerate(coroutines)}
    opened = Branches(run, scope_of(run), group, by_name, limit=limit)
    try:
        if not opened.all_begun:
            await _begin_all(opened, collect=collect)
        tasks = list(opened.tasks.values())
        await asyncio.wait(tasks, return_when=asyncio.ALL_COMPLETED if collect else asyncio.FIRST_EXCEPTION)
        failed = None if collect else _failed(opened)
        if failed is not None and any(not task.done() for task in tasks):
            await decide(run, group, failed, opened, run.take(group, RACE), if_open=True)
    except BaseException:
        await opened.give_up()
        raise
    opened.drop_others()
    await settle(tasks)
    if failed is not None:
        tasks[int(failed)].result()
    return [_collected(task) if collect else task.result() for task in tasks]


async def _begin_all(opened: Branches, *, collect: bool) -> None:
    """Begin one more branch for each that has ended, until all have begun or one was stopped or, unless errors are
    collected, has failed.

    Replay begins the same branches: it delivers the same results in the same order, and holds back new calls until all
    of them are delivered.
    """
    running = set(opened.tasks.values())
    while running and not opened.all_begun:
        ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if any(map(_was_stopped, ended)) or (not collect and _failed(opened) is not None):
            return
        begun = len(opened.tasks)
        opened.begin(len(ended))
        running.update(islice(opened.tasks.values(), begun, None))


def _was_stopped(task: "asyncio.Task[Any]") -> bool:
    """Whether the task was cancelled, or torn down with the run."""
    return task.cancelled() or not isinstance(task.exception(), Exception | None)


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
    *,
    collect: bool,
) -> list[Any]:
    """One step for each item, `limit` at a time; values, or StepErrors if errors are collected, in the order of the
    items."""
    values: list[Any] = [None] * len(items)
    indexes = iter(range(len(items)))

    async def work(indexes: Iterator[int]) -> None:
        for index in indexes:
            try:
                values[index] = await execute_step(run, ids[index], options, fn, (items[index],), {})
            except StepError as error:
                if not collect:
                    raise
                values[index] = error

    await execute_parallel(run, group, [work(indexes) for _ in range(min(limit, len(items)))], collect=False)
    return values

"""ctx.parallel, ctx.map and ctx.race: what they are called with is checked, and the branches get their names."""

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, cast

from ...core.errors import InvalidArgument
from ..execution.calls.bodies import StepOptions
from ..execution.calls.branches import as_coroutine
from ..execution.calls.parallel import execute_map, execute_parallel
from ..execution.calls.races import execute_race
from ..execution.run_execution import RunExecution
from ..execution.scopes import AnyCoroutine
from .signals import Won
from .signatures import check_name
from .step import Step, here, merged


def parallel(run: RunExecution, aws: tuple[Any, ...], on_error: str) -> Coroutine[Any, Any, Any]:
    if on_error not in ("fail-fast", "collect"):
        raise InvalidArgument(f'on_error={on_error!r} must be "fail-fast" or "collect".', field="on_error")
    scope = here(run, "ctx.parallel()")
    is_list = len(aws) == 1 and not inspect.isawaitable(aws[0])
    coroutines = _awaitables(cast("Iterable[Any]", aws[0]) if is_list else aws, "ctx.parallel()")
    group = scope.allot("parallel")
    return _listed(execute_parallel(run, group, coroutines, collect=on_error == "collect"), is_list=is_list)


def map_items(  # noqa: PLR0917  the parts of one call
    run: RunExecution,
    name: str,
    items: Iterable[Any],
    fn: Callable[..., Any],
    key: Callable[[Any], object] | None,
    limit: int | None,
    options: StepOptions,
) -> Coroutine[Any, Any, list[Any]]:
    if limit is not None and limit < 1:
        raise InvalidArgument(f"limit={limit!r} must be at least 1. Leave it out for none.", field="limit")
    scope = here(run, f"ctx.map({name!r})")
    if isinstance(fn, Step):
        own = cast("Step[..., Any]", fn)
        options, fn = merged(options, own.step_options), own.fn
    group = scope.allot(check_name(name, what="name"))
    values = list(items)
    keys = [str(index) if key is None else str(key(item)) for index, item in enumerate(values)]
    if len(set(keys)) < len(keys):
        twice = next(each for each in keys if keys.count(each) > 1)
        raise InvalidArgument(
            f"{group}[{twice}]: the key is used for more than one item. Keys must be different.", field="key"
        )
    ids = [f"{group}[{each}]" for each in keys]
    return execute_map(run, group, ids, values, fn, options, limit or max(len(values), 1))


def race(run: RunExecution, aws: tuple[Any, ...], named: Mapping[str, Any]) -> Coroutine[Any, Any, Any]:
    if bool(aws) == bool(named):
        raise InvalidArgument("ctx.race() takes either awaitables or names: race(a, b) or race(x=a, y=b).", field="aws")
    scope = here(run, "ctx.race()")
    names = [check_name(name, what="name") for name in named] or [str(index) for index in range(len(aws))]
    coroutines = _awaitables(list(named.values()) if named else aws, "ctx.race()")
    winner = execute_race(run, scope.allot("race"), dict(zip(names, coroutines, strict=True)))
    return _won(winner) if named else _value(winner)


def _awaitables(aws: Iterable[Any], what: str) -> Sequence[AnyCoroutine]:
    coroutines: list[AnyCoroutine] = []
    for each in aws:
        if not inspect.isawaitable(each):
            raise InvalidArgument(f"{what}: {each!r} cannot be awaited. Give it coroutines.", field="aws")
        coroutines.append(each if inspect.iscoroutine(each) else as_coroutine(each))
    return coroutines


async def _listed(coroutine: Coroutine[Any, Any, list[Any]], *, is_list: bool) -> Any:
    values = await coroutine
    return values if is_list else tuple(values)


async def _won(race: Coroutine[Any, Any, tuple[str, Any]]) -> Won[Any]:
    return Won(*await race)


async def _value(race: Coroutine[Any, Any, tuple[str, Any]]) -> Any:
    return (await race)[1]

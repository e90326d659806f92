"""ctx.parallel, ctx.map and ctx.race: check their arguments and name their branches."""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast, overload

from ...core.duration import Duration
from ...core.errors import InvalidArgument, StepError
from ..execution.calls.bodies import StepOptions
from ..execution.calls.branches import as_coroutine
from ..execution.calls.parallel import execute_map, execute_parallel
from ..execution.calls.races import execute_race
from ..execution.run_execution import RunExecution
from ..execution.scopes import AnyCoroutine, check_id
from .retry import Retry
from .run_facts import RunFacts
from .signals import Won
from .signatures import check_name
from .step import Step, here, merged, step_options

T = TypeVar("T")
R = TypeVar("R")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")

A: TypeAlias = Awaitable[T]
Call: TypeAlias = Coroutine[Any, Any, T]
FailFast = Literal["fail-fast"]
Collect = Literal["collect"]


class BranchCalls(RunFacts):
    """The calls of a Context that run several branches at once."""

    @overload
    def parallel(
        self, a: A[T1], b: A[T2], /, *, on_error: FailFast = ..., limit: int | None = ...
    ) -> Call[tuple[T1, T2]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], c: A[T3], /, *, on_error: FailFast = ..., limit: int | None = ...
    ) -> Call[tuple[T1, T2, T3]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], c: A[T3], d: A[T4], /, *, on_error: FailFast = ..., limit: int | None = ...
    ) -> Call[tuple[T1, T2, T3, T4]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], c: A[T3], d: A[T4], e: A[T5], /, *, on_error: FailFast = ..., limit: int | None = ...
    ) -> Call[tuple[T1, T2, T3, T4, T5]]: ...
    @overload
    def parallel(
        self, aws: Iterable[A[T]], /, *, on_error: FailFast = ..., limit: int | None = ...
    ) -> Call[list[T]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], /, *, on_error: Collect, limit: int | None = ...
    ) -> Call[tuple[T1 | Exception, T2 | Exception]]: ...
    @overload
    def parallel(
        self, a: A[T1], b: A[T2], c: A[T3], /, *, on_error: Collect, limit: int | None = ...
    ) -> Call[tuple[T1 | Exception, T2 | Exception, T3 | Exception]]: ...
    @overload
    def parallel(
        self, a: A[Any], b: A[Any], c: A[Any], d: A[Any], /, *more: A[Any], on_error: Collect, limit: int | None = ...
    ) -> Call[tuple[Any, ...]]: ...
    @overload
    def parallel(
        self, aws: Iterable[A[T]], /, *, on_error: Collect, limit: int | None = ...
    ) -> Call[list[T | Exception]]: ...
    @overload
    def parallel(
        self,
        a: A[Any],
        b: A[Any],
        c: A[Any],
        d: A[Any],
        e: A[Any],
        f: A[Any],
        /,
        *more: A[Any],
        on_error: FailFast = ...,
        limit: int | None = ...,
    ) -> Call[tuple[Any, ...]]: ...
    def parallel(
        self, *aws: Any, on_error: Literal["fail-fast", "collect"] = "fail-fast", limit: int | None = None
    ) -> Call[Any]:
        """Run coroutines at once: `a, b = await ctx.parallel(one(ctx), two(ctx))`. An iterable of them returns a list.

        Args:
            aws: Coroutines, or one iterable of them.
            on_error: `"fail-fast"` (the default): the first error cancels the others and is raised when they have
                ended. `"collect"`: errors are returned in the places of results.
            limit: How many run at once; the next one begins when one has ended, in the given order. Default: all.

        When the run is retried, completed steps are not executed again.
        """
        return _parallel(self._run, aws, on_error, limit)

    @overload
    def map(
        self,
        name: str,
        items: Iterable[T],
        fn: Callable[[T], Coroutine[Any, Any, R]],
        *,
        key: Callable[[T], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        on_error: FailFast = ...,
    ) -> Call[list[R]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[T],
        fn: Callable[[T], R],
        *,
        key: Callable[[T], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        on_error: FailFast = ...,
    ) -> Call[list[R]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[T],
        fn: Callable[[T], Coroutine[Any, Any, R]],
        *,
        key: Callable[[T], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        on_error: Collect,
    ) -> Call[list[R | StepError]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[T],
        fn: Callable[[T], R],
        *,
        key: Callable[[T], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        on_error: Collect,
    ) -> Call[list[R | StepError]]: ...
    def map(
        self,
        name: str,
        items: Iterable[Any],
        fn: Callable[..., Any],
        *,
        key: Callable[[Any], object] | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        on_error: Literal["fail-fast", "collect"] = "fail-fast",
    ) -> Call[list[Any]]:
        """Execute one step for each item. Returns the results in the order of the items.

        Args:
            name: The name of the steps: `name[0]`, `name[1]` ..., or `name[key]`.
            items: The items.
            fn: The function, sync or async, called with one item.
            key: Names the step of an item, for collections whose order may change. Keys must differ.
            limit: How many run at once. Default: all.
            retry: As in `step`.
            timeout: As in `step`.
            on_error: `"fail-fast"` (the default): the first step that fails for good cancels the others, and its
                StepError is raised. `"collect"`: all run, and the StepErrors are returned in the places of results.
        """
        options = step_options(name, retry, timeout)
        return _map(self._run, name, items, fn, key, limit, options, collect=_is_collect(on_error))

    @overload
    def race(self, a: Awaitable[T1], b: Awaitable[T2], /) -> Call[T1 | T2]: ...
    @overload
    def race(self, a: Awaitable[T1], b: Awaitable[T2], c: Awaitable[T3], /) -> Call[T1 | T2 | T3]: ...
    @overload
    def race(
        self, a: Awaitable[T1], b: Awaitable[T2], c: Awaitable[T3], d: Awaitable[T4], /
    ) -> Call[T1 | T2 | T3 | T4]: ...
    @overload
    def race(self, **aws: Awaitable[T]) -> Call[Won[T]]: ...
    def race(self, *aws: Any, **named: Any) -> Call[Any]:
        """Return the result of the branch that finishes first and cancel the others. If the first to finish raises, the
        error is raised. A sleep returns None.

        Args:
            aws: Coroutines.
            named: Coroutines by name, instead of `aws`: then the result is `Won(name, value)`.

        The winner is recorded before this returns.
        """
        return _race(self._run, aws, named)


def _parallel(run: RunExecution, aws: tuple[Any, ...], on_error: str, limit: int | None) -> Call[Any]:
    collect, most = _is_collect(on_error), _checked_limit(limit)
    scope = here(run, "ctx.parallel()")
    is_list = len(aws) == 1 and not inspect.isawaitable(aws[0])
    coroutines = _awaitables(cast("Iterable[Any]", aws[0]) if is_list else aws, "ctx.parallel()")
    group = scope.allot("parallel")
    return _listed(execute_parallel(run, group, coroutines, collect=collect, limit=most), is_list=is_list)


def _is_collect(on_error: str) -> bool:
    if on_error not in ("fail-fast", "collect"):
        raise InvalidArgument(f'on_error={on_error!r} must be "fail-fast" or "collect".', field="on_error")
    return on_error == "collect"


def _checked_limit(limit: object) -> int | None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise InvalidArgument(
            f"limit={limit!r} must be a whole number from 1 on. Leave it out for none.", field="limit"
        )
    return limit


def _map(  # noqa: PLR0917  the parts of one call
    run: RunExecution,
    name: str,
    items: Iterable[Any],
    fn: Callable[..., Any],
    key: Callable[[Any], object] | None,
    limit: int | None,
    options: StepOptions,
    *,
    collect: bool,
) -> Call[list[Any]]:
    most = _checked_limit(limit)
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
    for each in ids:
        check_id(each)
    return execute_map(run, group, ids, values, fn, options, most or max(len(values), 1), collect=collect)


def _race(run: RunExecution, aws: tuple[Any, ...], named: Mapping[str, Any]) -> Call[Any]:
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

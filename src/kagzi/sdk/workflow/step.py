"""@step: a function that is a step when workflow code calls it."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar, cast, overload

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.public import exported
from ..execution.calls.bodies import StepOptions
from ..execution.calls.steps import execute_step
from ..execution.run_execution import RunExecution
from ..execution.scopes import Scope
from .call_sites import called
from .current import StepInfo, place
from .retry import Retry, check_retry
from .signatures import check_name, default_name
from .workflow import Workflow

P = ParamSpec("P")
R = TypeVar("R")


_PLAIN_MAX = 1_000  # names that a workflow makes up must not fill the memory
_plain: dict[str, StepOptions] = {}


def step_options(name: object, retry: object, timeout: Duration | None, *, once: bool = False) -> StepOptions:
    """Checked options of a step. Raises InvalidArgument."""
    if retry is not None or timeout is not None or once or type(name) is not str:
        return _checked_options(name, retry, timeout, once=once)
    plain = _plain.get(name)
    if plain is None:
        if len(_plain) >= _PLAIN_MAX:
            _plain.clear()
        plain = _plain[name] = _checked_options(name, None, None, once=False)
    return plain


def _checked_options(name: object, retry: object, timeout: Duration | None, *, once: bool) -> StepOptions:
    if callable(name):
        function = getattr(name, "__name__", "function")
        raise InvalidArgument(
            f'the name of the step is missing: {function} is a function. Write: await ctx.step("{function}").run('
            f"{function}, argument, ...)",
            field="step name",
        )
    retry = check_retry(retry)
    if once and retry is not None and retry.max_attempts != 1:
        raise InvalidArgument(
            f"step {name!r} runs at most once: it cannot have retry={retry!r}. Leave one of the two out.", field="retry"
        )
    return StepOptions(check_name(name, what="step name"), retry, timeout_seconds(timeout), once)


def timeout_seconds(timeout: Duration | None) -> float | None:
    if timeout is None:
        return None
    seconds = parse_duration(timeout, what="timeout").total_seconds()
    if seconds <= 0:
        raise InvalidArgument(f"timeout={timeout!r} must be longer than zero. Leave it out for none.", field="timeout")
    return seconds


def here(run: RunExecution, what: str) -> Scope:
    """The scope of the calling workflow code. Raises PreconditionFailed anywhere else."""
    scope = place.get()
    if type(scope) is Scope and scope.run is run:
        return scope
    if isinstance(scope, StepInfo):
        raise PreconditionFailed(
            f"{what} was called inside the body of step {scope.step_id!r}. Steps cannot be nested: call it in the "
            f"workflow instead, or call the function directly."
        )
    raise PreconditionFailed(
        f"{what} was called outside of its workflow (in a thread, a callback, or another run). Call it in the workflow "
        "function "
        f"or in a task made there."
    )


def merged(call: StepOptions, function: StepOptions) -> StepOptions:
    """The options of a call, and those of the decorated function where the call says nothing."""
    return call._replace(
        retry=call.retry or function.retry,
        timeout_s=function.timeout_s if call.timeout_s is None else call.timeout_s,
        once=call.once or function.once,
    )


class StepCall:
    """A call of a step in the making: `await ctx.step("name").retry(...).timeout("30s").run(fn, ...)`.

    Immutable: every method returns a new one.
    """

    __slots__ = ("_key", "_options", "_run")

    def __init__(self, run: RunExecution, options: StepOptions, key: object = None) -> None:
        self._run = run
        self._options = options
        self._key = key

    def retry(self, retry: Retry) -> Self:
        """The same call with this `retry`."""
        present = self._options
        checked = step_options(present.name, retry, None, once=present.once)
        return type(self)(self._run, checked._replace(timeout_s=present.timeout_s), self._key)

    def timeout(self, timeout: Duration) -> Self:
        """The same call with this `timeout` for each attempt."""
        return type(self)(self._run, self._options._replace(timeout_s=timeout_seconds(timeout)), self._key)

    @overload
    def run(
        self, fn: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...
    def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Execute a function as this step and return its result.

        Args:
            fn: The function, sync (in a thread) or async, or a `@step`.
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        The step's id is allotted by this call, whatever task awaits the result. Raises StepError when it failed for
        good.
        """
        options = self._options
        if isinstance(fn, Step):
            own = cast("Step[..., Any]", fn)
            options, fn = merged(options, own.step_options), own.fn
        elif isinstance(fn, Workflow):
            raise InvalidArgument(
                f"step {options.name!r}: {fn!r} is a workflow. Run it as a child: await ctx.child({fn.fn.__name__}, "
                "...).",
                field="fn",
            )
        elif not callable(fn):
            raise InvalidArgument(
                f"step {options.name!r}: {fn!r} is not a function. Write .run(function, argument, ...).", field="fn"
            )
        what = f"ctx.step({options.name!r})"
        step_id = here(self._run, what).allot(options.name, self._key)
        return called(execute_step(self._run, step_id, options, fn, args, kwargs), what)

    if not TYPE_CHECKING:  # a checker is to see that it can be neither awaited nor called

        def __await__(self) -> NoReturn:
            name = self._options.name
            raise TypeError(
                f"ctx.step({name!r}) does nothing without a function. Write: await ctx.step({name!r}).run(function, "
                "argument, ...)"
            )

        def __call__(self, *args: object, **kwargs: object) -> NoReturn:
            name = self._options.name
            raise TypeError(
                f"ctx.step({name!r}) is not called like a function. Write: await ctx.step({name!r}).run(function, "
                "argument, ...)"
            )


@exported
class Step(Generic[P, R]):
    """A function that is a step when workflow code calls it; elsewhere a call just runs it. Made by `@step`.

    Always awaitable, also if the function is not async.
    """

    def __init__(
        self, fn: Callable[P, Any], name: str, retry: Retry | None, timeout: Duration | None, *, once: bool = False
    ) -> None:
        self.fn = fn  #: the plain function
        self.step_options = step_options(name, retry, timeout, once=once)  #: name, retry, timeout and once, checked
        functools.update_wrapper(self, fn)

    @property
    def name(self) -> str:
        """What the step is called."""
        return self.step_options.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        scope = place.get()
        if type(scope) is Scope:
            options = self.step_options
            run = cast("RunExecution", scope.run)
            step_id = scope.allot(options.name)
            return called(execute_step(run, step_id, options, self.fn, args, kwargs), f"step {options.name!r}")
        return _call_plainly(self.fn, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A decorated method: bound like any other."""
        if instance is None:
            return self
        bound = Step[..., Any](cast("Any", self.fn).__get__(instance, owner), self.name, None, None)
        bound.step_options = self.step_options
        return bound

    def options(
        self, *, name: str | None = None, retry: Retry | None = None, timeout: Duration | None = None
    ) -> "Step[P, R]":
        """The same function with other options.

        Args:
            name: What the step is called. Default: as before.
            retry: As in `ctx.step`. Default: as before.
            timeout: As in `ctx.step`. Default: as before.
        """
        present = self.step_options
        changed = Step[P, R](self.fn, present.name if name is None else name, retry or present.retry, timeout)
        kept_s = present.timeout_s if timeout is None else changed.step_options.timeout_s
        changed.step_options = changed.step_options._replace(timeout_s=kept_s, once=present.once)
        return changed

    def __repr__(self) -> str:
        return f"<Step {self.name!r}>"


async def _call_plainly(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    value = fn(*args, **kwargs)
    return await value if inspect.isawaitable(value) else value


class StepDecorator(Protocol):
    """What @step(...) with options returns."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...


@overload
def step(fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
@overload
def step(fn: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    name: str | None = None, /, *, retry: Retry | None = None, timeout: Duration | None = None, once: bool = False
) -> StepDecorator: ...
@exported
def step(
    fn: Callable[..., Any] | str | None = None,
    /,
    *,
    retry: Retry | None = None,
    timeout: Duration | None = None,
    once: bool = False,
) -> Any:
    """Make a function a step wherever workflow code calls it: `@step`, or `@step("name", retry=..., timeout="1m")`.

    Args:
        fn: The function, or the name of the step. Default: the function's name, in kebab-case.
        retry: When to try again. Default: the workflow's, the worker's, the server's (3 attempts), in this order.
        timeout: The longest time for each attempt. Default: none.
        once: At most one execution, whatever happens; if its worker is lost meanwhile the step fails (kind LOST).
    """
    name = fn if isinstance(fn, str) else None

    def decorate(function: Callable[..., Any]) -> Step[..., Any]:
        own_name = default_name(function, what="step") if name is None else name
        return Step(function, own_name, retry, timeout, once=once)

    return decorate(fn) if callable(fn) else decorate

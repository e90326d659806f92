"""@step: makes a function a step when workflow code calls it."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar, cast, overload

import msgspec

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.public import exported
from ..execution.calls.bodies import StepOptions
from ..execution.calls.steps import execute_step
from ..execution.run_execution import RunExecution
from ..execution.scopes import Scope
from .call_sites import called
from .codec import codec_for
from .current import StepInfo, place
from .retry import Retry, check_retry
from .signatures import check_name, default_name
from .workflow import Workflow

P = ParamSpec("P")
R = TypeVar("R")


_PLAIN_MAX = 1_000  # bounds the memory if a workflow generates names
_plain: dict[str, StepOptions] = {}


def step_options(name: object, retry: object, timeout: Duration | None, *, once: bool = False) -> StepOptions:
    """The checked options of a step. Raises InvalidArgument."""
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
    """The scope of the calling workflow code. Raises PreconditionFailed outside of workflow code."""
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
    """The options of a call, with those of the decorated function as defaults."""
    return msgspec.structs.replace(
        call,
        retry=call.retry or function.retry,
        timeout_s=function.timeout_s if call.timeout_s is None else call.timeout_s,
        once=call.once or function.once,
    )


class StepCall:
    """A step that is being configured: `await ctx.step("name").retry(...).timeout("30s").run(fn, ...)`.

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
        return self._with(msgspec.structs.replace(checked, timeout_s=present.timeout_s, codec=present.codec))

    def timeout(self, timeout: Duration) -> Self:
        """The same call with this `timeout` for each attempt."""
        return self._with(msgspec.structs.replace(self._options, timeout_s=timeout_seconds(timeout)))

    def returns(self, returns: Any) -> Self:
        """The same call, whose result has the type `returns`: for a function without a return annotation."""
        return self._with(msgspec.structs.replace(self._options, codec=codec_for(returns)))

    def _with(self, options: StepOptions) -> Self:
        return type(self)(self._run, options, self._key)

    @overload
    def run(
        self, fn: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...
    def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Execute a function as this step and return its result.

        Args:
            fn: The function, sync (executed in a thread) or async, or a `@step`.
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        This call allots the step's id, whatever task awaits the result. Raises StepError when the step failed for good.
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

    if not TYPE_CHECKING:  # hidden, so that type checkers report awaiting or calling it

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
    """A function that is a step when workflow code calls it; elsewhere a call just executes it. Made by `@step`.

    Always awaitable, even if the function is not async.
    """

    def __init__(
        self, fn: Callable[P, Any], name: str, retry: Retry | None, timeout: Duration | None, *, once: bool = False
    ) -> None:
        self.fn = fn  #: the plain function
        self.step_options = step_options(name, retry, timeout, once=once)  #: name, retry, timeout and once, checked
        functools.update_wrapper(self, fn)

    @property
    def name(self) -> str:
        """The name of the step."""
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
        """Bind a decorated method like any other."""
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
            name: The name of the step. Default: unchanged.
            retry: As in `ctx.step`. Default: unchanged.
            timeout: As in `ctx.step`. Default: unchanged.
        """
        present = self.step_options
        changed = Step[P, R](self.fn, present.name if name is None else name, retry or present.retry, timeout)
        kept_s = present.timeout_s if timeout is None else changed.step_options.timeout_s
        changed.step_options = msgspec.structs.replace(changed.step_options, timeout_s=kept_s, once=present.once)
        return changed

    def __repr__(self) -> str:
        return f"<Step {self.name!r}>"


async def _call_plainly(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    value = fn(*args, **kwargs)
    return await value if inspect.isawaitable(value) else value


class StepDecorator(Protocol):
    """The type of the decorator that @step(...) with options returns."""

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
        retry: When to try again. Default: the workflow's policy, else the worker's, else the server's (3 attempts).
        timeout: The longest time for each attempt. Default: none.
        once: At most one execution, whatever happens. If its worker is lost meanwhile, the step fails (kind LOST).
    """
    name = fn if isinstance(fn, str) else None

    def decorate(function: Callable[..., Any]) -> Step[..., Any]:
        own_name = default_name(function, what="step") if name is None else name
        return Step(function, own_name, retry, timeout, once=once)

    return decorate(fn) if callable(fn) else decorate

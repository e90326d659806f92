"""@workflow: makes a function durable."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeVar, overload

from ...core.duration import Duration
from ...core.public import exported
from ...core.workflow_types.queues import TypeLimitKeywords
from .context import Context
from .retry import Retry
from .signals import Signal
from .workflow import Workflow

I = TypeVar("I")  # noqa: E741  input and output, as in the documentation
O = TypeVar("O")  # noqa: E741  input and output, as in the documentation


class WorkflowDecorator(Protocol):
    """The type of the decorator that @workflow(...) with options returns."""

    @overload
    def __call__(self, fn: Callable[[Context, I], Coroutine[Any, Any, O]], /) -> Workflow[I, O]: ...
    @overload
    def __call__(self, fn: Callable[[Context], Coroutine[Any, Any, O]], /) -> Workflow[None, O]: ...


@overload
def workflow(fn: Callable[[Context, I], Coroutine[Any, Any, O]], /) -> Workflow[I, O]: ...
@overload
def workflow(fn: Callable[[Context], Coroutine[Any, Any, O]], /) -> Workflow[None, O]: ...
@overload
def workflow(
    name: str | None = None,
    /,
    *,
    version: int | str = 1,
    retry: Retry | None = None,
    timeout: Duration | None = None,
    signals: Iterable[Signal[Any]] = (),
    limits: TypeLimitKeywords | None = None,
) -> WorkflowDecorator: ...
@exported
def workflow(
    fn: Callable[..., Any] | str | None = None,
    /,
    *,
    version: int | str = 1,
    retry: Retry | None = None,
    timeout: Duration | None = None,
    signals: Iterable[Signal[Any]] = (),
    limits: TypeLimitKeywords | None = None,
) -> Any:
    """Make a durable function: `@workflow`, or `@workflow("name", version=2, retry=..., timeout="2 days")`.

    Args:
        fn: The function, or the name of the workflow. Default: the function's name in kebab-case: `sync_customer` is
            `sync-customer`. In workflow names, `_` and `-` are the same everywhere.
        version: A number or a text. New runs get the highest version that is registered and not deprecated, unless a
            default is set.
        retry: The default retry policy of its steps.
        timeout: How long a run may take from its creation; then it fails with kind TIMEOUT. Default: no limit.
        signals: Signals that it waits for, besides those that the function refers to by a global name. Servers refuse
            values that do not match their types, and show forms for them.
        limits: Limits of its queue, for all workers and servers, as
            [TypeLimitKeywords](operations.md#typelimitkeywords). A worker with `apply_limits` applies them when it
            starts; other workers log the differences.
    """
    name = fn if isinstance(fn, str) else None

    def decorate(function: Callable[..., Any]) -> Workflow[Any, Any]:
        return Workflow(
            function, name=name, version=version, retry=retry, timeout=timeout, signals=signals, limits=limits
        )

    return decorate(fn) if callable(fn) else decorate

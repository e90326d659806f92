"""A durable function, as workers and clients see it."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import is_dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from msgspec import Struct

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.limits import NAME_BYTES
from ...core.public import exported
from ...core.records import Payload
from ...core.workflow_types.names import canonical_type
from ...core.workflow_types.queues import TypeLimitKeywords, checked_limits
from .codec import ANY, NONE, Codec, codec_for, write_payload
from .models import is_pydantic
from .retry import Retry, check_retry
from .signals import Signal
from .signatures import check_name, default_name, is_async, type_hints

I_contra = TypeVar("I_contra", contravariant=True)
O_co = TypeVar("O_co", covariant=True)
_PLAIN = (str, int, float, bool, bytes, list, tuple, set, dict)


@exported
class Workflow(Generic[I_contra, O_co]):
    """A durable function, made by `@workflow`. Call `.fn` to unit-test it as a plain coroutine.

    Args:
        fn: An `async def` that takes a Context and at most one input.
        name: The name of the workflow. Default: the function's name, in kebab-case.
        version: A number or a text.
        retry: The default retry policy of its steps.
        timeout: How long a run may take from its creation.
        signals: Signals that it waits for, besides those that the function refers to by a global name.
        limits: Limits of its queue, which a worker with `apply_limits` applies: see `Worker`.

    `input_is_optional`: the input has a default. Raises InvalidArgument for an invalid function or invalid options.
    """

    def __init__(
        self,
        fn: Callable[..., Awaitable[O_co]],
        *,
        name: str | None = None,
        version: int | str = 1,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        signals: Iterable[Signal[Any]] = (),
        limits: TypeLimitKeywords | None = None,
    ) -> None:
        self.fn = fn  #: the plain function
        spelled = default_name(fn, what="workflow") if name is None else name
        self.name = canonical_type(check_name(spelled, what="workflow name"))  #: with `-` for `_`
        self.version = _version_text(version, self.name)  #: as text
        self.retry = check_retry(retry)  #: the default retry policy of its steps
        self.timeout: timedelta | None = None if timeout is None else parse_duration(timeout, what="timeout")
        self.signals = _checked_signals(signals, self.name)  #: the declared signals
        self.limits: TypeLimitKeywords = {} if limits is None else limits  #: the declared limits of its queue
        checked_limits(self.limits)
        parameter = _input_parameter(fn, self.name)
        self.has_input = parameter is not None  #: whether the function takes an input
        self.input_is_optional = parameter is not None and parameter.default is not inspect.Parameter.empty
        self._input_name = parameter.name if parameter is not None else ""
        # What earlier runs in this process have shown about the function.
        self.runs_ahead = True
        self.warned_of_foreign_wait = False

    def __repr__(self) -> str:
        return f"<Workflow {self.name!r} version {self.version}>"

    if not TYPE_CHECKING:  # hidden, so that type checkers report a call

        def __call__(self, *args: object, **kwargs: object) -> NoReturn:
            name = getattr(self.fn, "__name__", self.name)
            raise TypeError(
                f"workflow {self.name!r} is not called like a function. Start it with client.start({name}, ...), run "
                "it as a child "
                f"with ctx.child({name}, ...), or call {name}.fn(...) in a unit test."
            )

    @cached_property
    def input_type(self) -> Any:
        """The annotation of the input; None for a workflow without input; Any if it is not annotated."""
        return type_hints(self.fn).get(self._input_name, Any) if self.has_input else None

    @cached_property
    def output_type(self) -> Any:
        """The annotation of the result; Any if it is not annotated."""
        return type_hints(self.fn).get("return", Any)

    @cached_property
    def input_codec(self) -> Codec[Any]:
        """The codec of the input. Raises InvalidArgument for a type without a JSON form."""
        return codec_for(self.input_type) if self.has_input else NONE

    @cached_property
    def output_codec(self) -> Codec[Any]:
        """The codec of the result. Raises InvalidArgument for a type without a JSON form."""
        return codec_for(self.output_type)

    def write_input(self, value: Any) -> Payload:
        """The encoded input `value`. None for an input with a default means the default. Raises InvalidArgument,
        ResourceExhausted."""
        codec = ANY if value is None and self.input_is_optional else self.input_codec
        return write_payload(codec, value, what=f"input of workflow {self.name!r}")

    def check(self) -> None:
        """Raise InvalidArgument if input or result have no JSON form. Called when a worker registers the workflow."""
        for what, codec in (("input", "input_codec"), ("output", "output_codec")):
            try:
                getattr(self, codec)
            except InvalidArgument as error:
                raise InvalidArgument(f"workflow {self.name!r}: {what}: {error}", field=what) from error


def _version_text(version: object, name: str) -> str:
    text = str(version) if isinstance(version, (int, str)) and not isinstance(version, bool) else ""
    if not text.strip() or len(text.encode("utf-8", "replace")) > NAME_BYTES:
        raise InvalidArgument(
            f"workflow {name!r}: version={version!r} must be a number or a text of 1 to {NAME_BYTES} bytes.",
            field="version",
        )
    return text


def _checked_signals(signals: Iterable[Signal[Any]], name: str) -> tuple[Signal[Any], ...]:
    declared = tuple(signals)
    for signal in declared:
        if not isinstance(signal, Signal):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
            raise InvalidArgument(
                f'workflow {name!r}: signals: {signal!r} is not a Signal. Write Signal("approved", bool).',
                field="signals",
            )
    if len({signal.name for signal in declared}) < len(declared):
        raise InvalidArgument(f"workflow {name!r}: signals: two have the same name.", field="signals")
    return declared


def _input_parameter(fn: Callable[..., Any], name: str) -> inspect.Parameter | None:
    """The parameter after the context, or None. Refuses all but `async def f(ctx)` and `async def f(ctx, input)`."""
    if not is_async(fn):
        raise InvalidArgument(f"workflow {name!r} must be an `async def` function, not {fn!r}.", field="fn")
    positional: list[inspect.Parameter] = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter)
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            raise InvalidArgument(
                f"workflow {name!r}: parameter {parameter.name!r} cannot be filled. Put it into the input.", field="fn"
            )
    needed = [parameter for parameter in positional if parameter.default is parameter.empty]
    if not positional or len(needed) > 2:
        raise InvalidArgument(
            f"workflow {name!r} must take (ctx) or (ctx, input), not {inspect.signature(fn)}. "
            f"Put several values into one dataclass or model.",
            field="fn",
        )
    if _is_data(positional[0].annotation):
        raise InvalidArgument(
            f"workflow {name!r}: its first parameter is the Context, but {positional[0].name!r} is annotated as "
            f"something else. Write async def {fn.__name__}(ctx: Context, {positional[0]}).",
            field="fn",
        )
    return positional[1] if len(positional) > 1 else None


def _is_data(annotation: object) -> bool:
    """Whether this is surely not the annotation of a context: a plain type or a model, or the name of a plain type."""
    if isinstance(annotation, str):
        return annotation in {each.__name__ for each in _PLAIN}
    if not isinstance(annotation, type):
        return False
    return annotation in _PLAIN or is_dataclass(annotation) or issubclass(annotation, Struct) or is_pydantic(annotation)


def as_workflow(value: object) -> Workflow[Any, Any]:
    """The Workflow, given itself or a pair (name, function)."""
    if isinstance(value, Workflow):
        known: Workflow[Any, Any] = cast("Any", value)
        return known
    if isinstance(value, tuple):
        pair: tuple[Any, ...] = cast("Any", value)
        if len(pair) == 2 and isinstance(pair[0], str) and callable(pair[1]):
            fn: Callable[..., Awaitable[Any]] = cast("Any", pair[1])
            return Workflow[Any, Any](fn, name=pair[0])
    raise InvalidArgument(
        f"{value!r} is not a workflow. Decorate the function with @workflow, or pass a pair (name, function).",
        field="workflows",
    )

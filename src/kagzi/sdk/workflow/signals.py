"""Signals, and the result of a `race` with named branches."""

import builtins
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...core.public import exported
from .codec import Codec, codec_for
from .signatures import check_name

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@exported
class Signal(Generic[T]):
    """A typed message that can be sent to a run: `approved = Signal("approved", Approval)`.

    Args:
        name: The name that the run waits for.
        type: The type of the value, checked when it is sent and again when it is received.
    """

    __slots__ = ("_codec", "_schema", "name", "type")

    def __init__(self, name: str, type: builtins.type[T]) -> None:
        self.name = check_name(name, what="name")  #: the name that the run waits for
        self.type: builtins.type[T] = type  #: the type of the value
        self._codec: Codec[Any] | None = None
        self._schema: str | None = None

    @property
    def codec(self) -> Codec[Any]:
        """The codec of its values. Raises InvalidArgument for a type that has no JSON form."""
        if self._codec is None:
            self._codec = codec_for(self.type)
        return self._codec

    @property
    def schema(self) -> str:
        """The JSON Schema of its values; empty for a type that has none, or if it is larger than a server stores."""
        if self._schema is None:
            from ..schemas.json_schema import is_too_large, schema_of  # noqa: PLC0415  most programs wait for none

            schema = schema_of(self.type)
            self._schema = "" if is_too_large(schema) else schema
        return self._schema

    def __repr__(self) -> str:
        return f"Signal({self.name!r}, {getattr(self.type, '__name__', self.type)})"


@exported
@dataclass(frozen=True, slots=True)
class Won(Generic[T_co]):
    """The branch of `ctx.race(name=...)` that finished first."""

    name: str  #: the name of the branch
    value: T_co  #: its result

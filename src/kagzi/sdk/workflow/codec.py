"""Encodes user values as JSON by their annotation. `codec_for(type)` returns the codec of a type.

Supported are dataclass, msgspec.Struct, TypedDict, attrs, pydantic models, datetime, date, time, timedelta (ISO 8601),
UUID, Decimal, Enum, bytes (base64), tuple, set, None, unions, Any and object. Without an annotation, or as Any or
object, a value is decoded as plain JSON. NaN and infinity have no JSON form and are refused. Pydantic is never imported
here: it is used when the program has imported it.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument, ResourceExhausted, limit_reached
from ...core.records import Payload
from ..transport.payload_codec import refuse_encoded
from . import models
from .payload_paths import non_finite_path, unencodable_path

T = TypeVar("T")

_CODEC_ERRORS = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
_NULL = b"null"
_EXACT: tuple[type, ...] = (str, int, bool, float, type(None))  # values that decode to exactly what was encoded
_NUMBER_ADVICE = "JSON has neither NaN nor infinity. Use None, or a string"
_REASON_CHARS = 200
_TYPES_ADVICE = (
    "Use dataclasses, msgspec.Struct (tagged, in unions), TypedDict, attrs or pydantic models; a pydantic.RootModel "
    "may contain any other type that pydantic knows."
)


def _to_plain(value: Any) -> Any:
    if models.is_pydantic(type(value)):
        return models.dump(value)
    if isinstance(value, str):
        return str.__str__(value)  # msgspec encodes str, not its subclasses
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if inspect.iscoroutine(value):
        call = value.__qualname__.removesuffix(" (write await),")  # the name that `called` gave the coroutine
        raise TypeError(f"{call} is a coroutine that was not awaited. Write await before the call")
    raise TypeError(
        f"{type_name(type(value))} has no JSON form. Use a dataclass, msgspec.Struct, TypedDict, attrs or pydantic "
        "model"
    )


_encode = msgspec.json.Encoder(enc_hook=_to_plain).encode


class Codec(Generic[T]):
    """Encodes and decodes values of one annotated type. Made by `codec_for`. Keep it: making it is expensive."""

    __slots__ = ("_exact", "_read", "_write", "annotation")

    def __init__(
        self, annotation: Any, read: Callable[[bytes], T], write: Callable[[Any], bytes] | None = None
    ) -> None:
        self.annotation = annotation
        self._read = read
        self._write = write or _encode
        self._exact = (
            type(None) if annotation is None else next((each for each in _EXACT if each is annotation), object)
        )

    def encode(self, value: Any, *, what: str) -> bytes:
        """`what` names the value in errors ("output of step 'charge'"). Raises InvalidArgument, ResourceExhausted."""
        try:
            data = self._write(value)
        except _CODEC_ERRORS as error:
            raise _unencodable(value, what, error) from error
        if len(data) > limits.PAYLOAD_BYTES:
            raise _too_large(len(data), what)
        if data == _NULL:
            if value is not None:
                _refuse_non_finite(value, what)
        elif value.__class__ is not str and _NULL in data:  # a text may contain "null" and be slow to search
            _refuse_non_finite(value, what)
        return data

    def decode(self, data: bytes, *, what: str) -> T:
        """Raises InvalidArgument, which names the field and the expected type."""
        try:
            return self._read(data)
        except _CODEC_ERRORS as error:
            raise _undecodable(what, error) from error

    def read_back(self, value: T, data: bytes, *, what: str) -> T:
        """The value as decoding `data`, its encoded form, returns it. Raises InvalidArgument if the reader would refuse
        it, so that the error reaches the code that made the value."""
        if type(value) is self._exact:
            return value
        try:
            return self._read(data)
        except _CODEC_ERRORS as error:
            raise _not_as_declared(what, self.annotation, error) from error


_read_any = msgspec.json.Decoder().decode
ANY: Codec[Any] = Codec(Any, _read_any)
UNTYPED: Codec[Any] = Codec(Any, _read_any)
"""Of a function of which nobody said what it returns. Like ANY, but not for values that JSON would change."""
NONE: Codec[None] = Codec(None, msgspec.json.Decoder(None).decode)

_codecs: dict[Any, Codec[Any]] = {Any: ANY, object: ANY, None: NONE, type(None): NONE}


def codec_for(annotation: Any) -> Codec[Any]:
    """The codec of a type, cached. Raises InvalidArgument for a type that has no JSON form."""
    try:
        known = _codecs.get(annotation)
    except TypeError:  # an unhashable annotation, such as Annotated[int, []]
        return _build(annotation)
    if known is None:
        known = _codecs[annotation] = _build(annotation)
    return known


def write_payload(codec: Codec[Any], value: Any, *, what: str) -> Payload:
    """Raises InvalidArgument for a value that has no JSON form or does not match its annotation, ResourceExhausted for
    one that is too large."""
    payload = Payload(codec.encode(value, what=what))
    if codec is not ANY:
        codec.read_back(value, payload.data, what=what)
    return payload


def read_payload(codec: Codec[T], payload: Payload, *, what: str) -> T:
    """Raises InvalidArgument for a value that does not match the type, Undecodable for one that is still encoded."""
    if payload.metadata:
        refuse_encoded(payload.metadata, what)
    return codec.decode(payload.data, what=what)


def write_context(context: Mapping[str, Any] | None) -> Payload | None:
    """Raises InvalidArgument, ResourceExhausted."""
    if context is None:
        return None
    is_mapping = context.__class__ is dict or isinstance(cast("object", context), Mapping)
    keys: Iterable[object] = context if is_mapping else (None,)
    if not all(isinstance(key, str) for key in keys):
        raise InvalidArgument(
            f"context={context!r} must be a dict with strings as keys, whose values have a JSON form.", field="context"
        )
    return write_payload(ANY, dict(context), what="context") if context else None


def read_context(payload: Payload | None) -> dict[str, Any]:
    """Empty for a run without a context, and for one whose context is not a JSON object."""
    value: object = None if payload is None else read_payload(ANY, payload, what="context of the run")
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# --- building ---------------------------------------------------------------------------------------------------------


def _build(annotation: Any) -> Codec[Any]:
    if models.is_pydantic(annotation):
        try:
            models.complete(annotation)
        except RuntimeError as error:  # as below
            raise _unreadable(annotation, error) from error
        return Codec(annotation, models.pydantic_reader(annotation))
    try:
        return Codec(annotation, msgspec.json.Decoder(annotation, dec_hook=_from_plain).decode)
    except (TypeError, NameError) as error:
        # msgspec does not support unions of several models or dataclasses; pydantic does.
        if not models.mentions_pydantic(annotation):
            return _build_of_dataclasses(annotation, error)
    try:
        return Codec(annotation, models.adapter_reader(annotation))
    except (TypeError, NameError, RuntimeError) as error:  # pydantic raises these for types that it does not support
        raise _unreadable(annotation, error) from error


def _build_of_dataclasses(annotation: Any, refusal: Exception) -> Codec[Any]:
    """Of a type that msgspec does not support. Dataclasses may have unions that pydantic can tell apart: it then writes
    them, too, so that what it reads is its own form."""
    try:
        if models.has_discriminator(annotation):
            return Codec(annotation, models.adapter_reader(annotation), models.adapter_writer(annotation))
    except (TypeError, NameError, RuntimeError) as error:  # as above
        raise _unreadable(annotation, error) from error
    raise _unreadable(annotation, refusal) from refusal


def _from_plain(wanted: type, plain: Any) -> Any:
    if wanted is object:
        return plain
    if models.is_pydantic(wanted):
        return models.validate(wanted, plain)
    raise TypeError(f"values of type {type_name(wanted)} cannot be read from JSON")


def to_plain(value: Any) -> Any:
    """The value as plain dicts, lists, strings and numbers."""
    return msgspec.to_builtins(value, enc_hook=_to_plain)


def type_name(annotation: Any) -> str:
    """The type as people write it."""
    if isinstance(annotation, type):
        return annotation.__qualname__
    return str(annotation)


# --- errors -----------------------------------------------------------------------------------------------------------


def _unreadable(annotation: Any, error: Exception) -> InvalidArgument:
    reason = str(error).partition("\n")[0].rstrip(".")
    if len(reason) > _REASON_CHARS:  # msgspec writes types in full
        reason = f"{reason[:_REASON_CHARS]}..."
    # Python 3.11: pydantic says which TypedDict to use, and the general advice would name the one that it refuses.
    advice = "" if getattr(error, "code", "") == "typed-dict-version" else f" {_TYPES_ADVICE}"
    return InvalidArgument(f"{type_name(annotation)} cannot be read from JSON: {reason}.{advice}", field="annotation")


def _too_large(size: int, what: str) -> ResourceExhausted:
    return ResourceExhausted(
        f"{what} is {size:,} bytes as JSON; the limit is {limits.PAYLOAD_BYTES:,}. "
        f"Store it elsewhere and pass a reference.",
        metadata={**limit_reached("payload_bytes", limits.PAYLOAD_BYTES), "size": str(size)},
    )


def _unencodable(value: Any, what: str, error: Exception) -> InvalidArgument:
    path = unencodable_path(value, _encode)
    return InvalidArgument(f"{what} cannot be written as JSON: {error} (at {path})", field=path)


def _undecodable(what: str, error: Exception) -> InvalidArgument:
    path, reason = models.describe(error)
    return InvalidArgument(f"{what} does not fit: {reason} (at {path})", field=path)


def _not_as_declared(what: str, annotation: Any, error: Exception) -> InvalidArgument:
    path, reason = models.describe(error)
    return InvalidArgument(
        f"{what} does not fit its declared type {type_name(annotation)}: {reason} (at {path}). "
        f"Correct the value or the annotation.",
        field=path,
    )


def _refuse_non_finite(value: Any, what: str) -> None:
    """msgspec encodes NaN and infinity as null, which would change the value silently."""
    path = non_finite_path(to_plain(value))
    if path is not None:
        raise InvalidArgument(f"{what} contains NaN or infinity (at {path}). {_NUMBER_ADVICE}.", field=path)

"""What a worker would accept is never refused by the schema that it registered."""

import datetime as dt
import decimal
import enum
import uuid
from dataclasses import make_dataclass
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union

import attrs
import msgspec
import pydantic
import typing_extensions
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from kagzi.core.errors import InvalidArgument
from kagzi.core.records import Payload
from kagzi.core.workflow_types.schema_check import SchemaCheck
from kagzi.sdk.schemas.json_schema import schema_of
from kagzi.sdk.workflow.codec import codec_for


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2

    @classmethod
    def _missing_(cls, value: object) -> "Level":
        return cls.HIGH


class Pair(NamedTuple):
    first: int
    second: str = ""


class Named(pydantic.BaseModel):
    size: int = pydantic.Field(alias="Size", gt=0, lt=1_000)
    tags: set[str] = pydantic.Field(default_factory=set, max_length=2)


class Validated(pydantic.BaseModel):
    at: dt.datetime
    parts: list[int]

    @pydantic.field_validator("parts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value


class Node(pydantic.BaseModel):
    value: float
    next: Optional["Node"] = None


class Tree(msgspec.Struct):
    value: int
    children: list["Tree"] = []


class Pet(pydantic.BaseModel):
    kind: Literal["cat", "dog"]
    lives: int | None = None
    colour: Colour = Colour.RED
    weight: decimal.Decimal = decimal.Decimal(1)


Typed = tuple[Any, st.SearchStrategy[Any]]
"""A type, and JSON of which some fits it."""

_ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "1", "red", "2020-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "Size"]), inner, max_size=3),
    max_leaves=4,
)


def _scalars() -> list[Typed]:
    times = st.sampled_from(["2020-01-01T00:00:00Z", "2020-01-01", "P1D", "12:00:00", 5])
    return [
        (int, st.integers() | st.sampled_from(["1", 1.0, True])),
        (float, st.floats(allow_nan=False, allow_infinity=False) | st.integers()),
        (str, st.text(max_size=3)),
        (bool, st.booleans() | st.sampled_from([0, 1, "true"])),
        (type(None), st.none()),
        (decimal.Decimal, st.sampled_from(["1.5", 1, 2.5, "x"])),
        (dt.datetime, times),
        (dt.date, times),
        (dt.timedelta, times),
        (uuid.UUID, st.sampled_from([str(uuid.UUID(int=1)), "x", 1])),
        (bytes, st.sampled_from(["YWJj", "!"])),
        (Colour, st.sampled_from(["red", "blue", "green"])),
        (Level, st.sampled_from([1, 2, 7, "x"])),
        (Literal[1, "red"], st.sampled_from([1, 1.0, True, "red", "blue"])),
        (Annotated[int, msgspec.Meta(ge=0, le=10)], st.integers(-2, 12)),
        (Annotated[str, msgspec.Meta(min_length=1, max_length=2)], st.text("ab", max_size=3)),
        (Annotated[set[int], msgspec.Meta(max_length=2)], st.lists(st.integers(0, 2), max_size=5)),
        (Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 5})], st.integers(0, 9)),
        (Pair, st.lists(st.integers(0, 2) | st.just("x"), max_size=3)),
        (object, _ANY_JSON),
        (Any, _ANY_JSON),
        (
            Tree,
            st.recursive(
                _fields({"value": st.integers()}),
                lambda t: _fields({"value": st.integers(), "children": st.lists(t, max_size=2)}),
            ),
        ),
        (
            Named,
            _fields(
                {"Size": st.integers(0, 3), "size": st.sampled_from([1, "2"]), "tags": st.lists(st.sampled_from("ab"))}
            ),
        ),
        (Validated, _fields({"at": times, "parts": st.sampled_from(["1,2", [1, "2"], 3])})),
        (Node, _fields({"value": st.sampled_from([1, "2", None]), "next": st.none() | _fields({"value": st.just(1)})})),
        (
            Pet,
            _fields(
                {
                    "kind": st.sampled_from(["cat", "cow"]),
                    "lives": st.sampled_from([9, "9", None, 9.5]),
                    "colour": st.sampled_from(["red", 1]),
                    "weight": st.sampled_from([1, "2"]),
                }
            ),
        ),
    ]


def _fields(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={**fields, "other": st.just(1)})


_typed_dict: Any = TypedDict  # made at run time, as type checkers do not know them
_typed_dict_for_pydantic: Any = typing_extensions.TypedDict  # on Python 3.11 pydantic reads this one only
_UNKNOWN_TO_PYDANTIC = ("schema-for-unknown-type", "typed-dict-version")  # msgspec's own types; TypedDict on 3.11
_union: Any = Union
_create_model: Any = pydantic.create_model
_optional: Any = Optional
_numbers = iter(range(10**9))
_made: list[Any] = []


def _struct(kind: str, fields: list[Typed], wild: bool) -> Typed:
    names = [f"f{index}" for index in range(len(fields))]
    types = [each for each, _ in fields]
    values = dict(zip(names, (value for _, value in fields), strict=True))
    name = f"Made{next(_numbers)}"
    made: Any
    match kind:
        case "dataclass":
            made = make_dataclass(name, list(zip(names, types, strict=True)))
        case "struct":
            made = msgspec.defstruct(name, list(zip(names, types, strict=True)), forbid_unknown_fields=wild)
        case "tagged":
            made = msgspec.defstruct(name, list(zip(names, types, strict=True)), tag=name.lower(), rename="upper")
            values = {each.upper(): value for each, value in values.items()} | {"type": st.just(name.lower())}
        case "array":
            made = msgspec.defstruct(name, list(zip(names, types, strict=True)), array_like=True)
            _made.append(made)
            return made, st.tuples(*values.values()).map(list) | st.lists(_ANY_JSON, max_size=3)
        case "typed-dict":
            made = _typed_dict(name, dict(zip(names, types, strict=True)), total=not wild)
        case "typed-dict-for-pydantic":
            made = _typed_dict_for_pydantic(name, dict(zip(names, types, strict=True)), total=not wild)
        case "attrs":
            made = attrs.make_class(
                name, {each: attrs.field(type=kind) for each, kind in zip(names, types, strict=True)}
            )
        case _:
            made = _model(name, dict(zip(names, types, strict=True)), wild)
            if wild:
                values |= {each.upper(): value for each, value in values.items()}
    _made.append(made)
    whole = st.fixed_dictionaries(values)
    return made, whole | _fields(values)


def _model(name: str, types: dict[str, Any], wild: bool) -> Any:
    fields = {each: (kind, pydantic.Field(alias=each.upper()) if wild else ...) for each, kind in types.items()}
    try:
        return _create_model(name, **fields)
    except pydantic.errors.PydanticUserError as error:
        if error.code not in _UNKNOWN_TO_PYDANTIC:
            raise
        return int


def _containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    kinds = st.sampled_from(
        ["dataclass", "struct", "tagged", "array", "typed-dict", "typed-dict-for-pydantic", "attrs", "pydantic"]
    )
    return st.one_of(
        inner.map(lambda typed: (list[typed[0]], st.lists(typed[1] | _ANY_JSON, max_size=3))),
        inner.map(lambda typed: (dict[str, typed[0]], st.dictionaries(st.just("a"), typed[1]))),
        inner.map(lambda typed: (_optional[typed[0]], typed[1] | st.none())),
        inner.map(lambda typed: (tuple[typed[0], int], st.tuples(typed[1], st.integers(0, 1)).map(list))),
        st.tuples(inner, inner).map(lambda two: (_union[two[0][0], two[1][0]], two[0][1] | two[1][1])),
        st.builds(_struct, kinds, st.lists(inner, min_size=1, max_size=3), st.booleans()),
    )


def _decodes(annotation: Any, data: bytes) -> bool | None:
    try:
        codec = codec_for(annotation)
    except InvalidArgument:
        return None  # a type without a JSON form: no workflow can have it
    try:
        codec.decode(data, what="it")
    except InvalidArgument:
        return False
    return True


_TYPES = st.recursive(st.sampled_from(_scalars()), _containers, max_leaves=5)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_value_that_the_worker_would_accept_is_never_refused(data: st.DataObject) -> None:
    annotation, values = data.draw(_TYPES)
    value = data.draw(values | _ANY_JSON)
    payload = Payload(msgspec.json.encode(value))
    accepted = _decodes(annotation, payload.data)
    if accepted is None:
        return
    misfit = SchemaCheck(schema_of(annotation)).misfit(payload, "input")
    event(f"decodes: {accepted}, refused: {misfit is not None}")
    assert not (accepted and misfit), f"{annotation}: {value!r}: {misfit}"

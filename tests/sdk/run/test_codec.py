"""Values by annotation: what goes out as JSON comes back as it was; what cannot is refused by name."""

import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict
from uuid import UUID

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest
import typing_extensions

from kagzi import Context, workflow
from kagzi.core.errors import InvalidArgument, ResourceExhausted
from kagzi.sdk.workflow.codec import ANY, UNTYPED, codec_for
from kagzi.sdk.workflow.signatures import facts_of


class Colour(Enum):
    RED = "red"


class Address(TypedDict):
    street: str
    number: int


class Place(typing_extensions.TypedDict):
    street: str
    number: int


class Point(msgspec.Struct):
    x: int
    y: float = 0.0


class Circle(msgspec.Struct, tag=True):
    radius: float


class Square(msgspec.Struct, tag=True):
    side: float


@attrs.define
class Box:
    width: int


class Package(TypedDict):
    contents: object
    notes: NotRequired[list[object]]


class Event(msgspec.Struct):
    name: str
    details: object
    extra: dict[str, object] = {}
    maybe: object | None = None


@attrs.define
class Crate:
    things: list[object]


class Envelope(pydantic.BaseModel):
    message: object
    stamps: list[object] = []


class User(pydantic.BaseModel):
    id: int
    email: str = pydantic.Field(default="", alias="e-mail")
    birthday: datetime | None = None


class Renamed(pydantic.BaseModel):
    name: str = pydantic.Field(validation_alias="theirName")


class Group(pydantic.BaseModel):
    title: str


@dataclass
class Order:
    user: User
    lines: list[Point] = field(default_factory=list[Point])
    total: Decimal = Decimal(0)
    colour: Colour = Colour.RED
    photo: bytes = b""


USER = User.model_validate({"id": 1, "e-mail": "ada@x", "born": datetime(2000, 1, 1, tzinfo=UTC)})

VALUES: list[tuple[Any, Any]] = [
    (Any, {"a": [1, None, "ü", 1.5, True]}),
    (None, None),
    (int, 2**70),
    (str, "\0\U0001f600"),
    (bytes, b"\xff\0"),
    (datetime, datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)),
    (date, date(2024, 2, 29)),
    (timedelta, timedelta(days=1, microseconds=5)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("0.10")),
    (Colour, Colour.RED),
    (Literal["a", "b"], "b"),
    (tuple[int, str], (1, "a")),
    (set[int], {1, 2}),
    (frozenset[str], frozenset({"x"})),
    (dict[int, list[UUID]], {1: [UUID(int=1)]}),
    (int | None, None),
    (Address, {"street": "a", "number": 1}),
    (Point, Point(1, 2.5)),
    (Circle | Square, Square(2.0)),
    (Box, Box(3)),
    (User, USER),
    (User | None, USER),
    (list[User | Group], [USER, Group(title="t")]),
    (User | Group | str, "text"),
    (Renamed, Renamed.model_validate({"theirName": "n"})),
    (Order, Order(USER, [Point(1)], Decimal("9.99"), Colour.RED, b"jpg")),
    (dict[str, Order], {"a": Order(USER)}),
    (object, {"a": [1]}),
    (dict[str, object], {"a": 1, "b": [None, {"c": "d"}], "e": None}),
    (list[object], [1, "a", None, [2.5], {"b": True}]),
    (tuple[int, object], (1, {"a": [2]})),
    (dict[str, list[object] | None], {"a": [1, None], "b": None}),
    (object | None, None),
    (Optional[object], {"a": 1}),  # noqa: UP045  the old spelling is read, too
    (dict[str, object | None], {"a": None, "b": 1}),
    (dict[str, Any], {"a": [1, {"b": None}]}),
    (list[Any | None], [None, {"a": 1}]),
    (Package, {"contents": {"a": [1]}, "notes": ["b", 2, None]}),
    (list[Package], [{"contents": None}]),
    (Event, Event("n", [1, {"a": None}], {"b": 2}, maybe="c")),
    (Event | None, Event("n", None)),
    (Crate, Crate([1, "a", {"b": [None]}])),
    (Envelope, Envelope(message={"a": [1]}, stamps=[1, None, "x"])),
    (list[Envelope | User], [Envelope(message=None), USER]),
]


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=[str(annotation) for annotation, _ in VALUES])
def test_what_goes_out_comes_back(annotation: Any, value: Any) -> None:
    codec = codec_for(annotation)
    data = codec.encode(value, what="it")
    back = codec.decode(data, what="it")
    assert back == value
    assert type(back) is type(value)
    assert codec_for(annotation) is codec


class Opaque: ...


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (Opaque(), "$", "Opaque has no JSON form"),
        ({"a": [1, Opaque()]}, "$.a[1]", "Opaque has no JSON form"),
        (Order(USER, [Opaque()]), "$.lines[0]", "Opaque has no JSON form"),  # type: ignore[list-item]
        ([1.0, float("nan")], "$[1]", "NaN or infinity"),
        (float("inf"), "$", "NaN or infinity"),
        (Point(1, float("-inf")), "$.y", "NaN or infinity"),
        ({"s": "\ud800"}, "$.s", "surrogates not allowed"),
        ({(1, 2): 3}, "$", "tuple has no JSON form"),
    ],
)
def test_what_cannot_be_written_is_named(value: Any, path: str, reason: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        codec_for(Any).encode(value, what="output of step 'x'")
    assert str(caught.value).startswith("output of step 'x' ")
    assert reason in str(caught.value)
    assert caught.value.field == path


@pytest.mark.parametrize(
    ("annotation", "data", "path", "reason"),
    [
        (int, b'"1"', "$", "Expected int, got str"),
        (Order, b'{"user": {"id": 1}, "lines": [{"x": "1"}]}', "$.lines[0].x", "Expected int, got str"),
        (Order, b'{"user": {"id": "one"}}', "$.user.id", "valid integer"),
        (User, b'{"id": [1]}', "$.id", "valid integer"),
        (Order, b"{}", "$", "missing required field user"),
        (list[User | Group], b'[{"title": 1}]', "$[0].User.id", "Field required"),
        (Colour, b'"blue"', "$", "Invalid enum value 'blue'"),
        (int, b"{", "$", "got object"),
    ],
)
def test_what_does_not_fit_is_named(annotation: Any, data: bytes, path: str, reason: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        codec_for(annotation).decode(data, what="input of workflow 'w'")
    assert str(caught.value).startswith("input of workflow 'w' does not fit: ")
    assert reason in str(caught.value)
    assert caught.value.field == path


def test_a_payload_over_the_limit_names_size_and_limit() -> None:
    with pytest.raises(ResourceExhausted, match=r"it is 2,097,155 bytes as JSON; the limit is 2,097,152") as caught:
        codec_for(str).encode("x" * (2 * 1024 * 1024 + 1), what="it")
    assert caught.value.metadata["limit"] == "payload_bytes"


def test_a_type_without_json_form_is_refused_when_it_is_looked_at() -> None:
    @dataclass
    class A:
        x: int

    @dataclass
    class B:
        x: int

    with pytest.raises(InvalidArgument, match="cannot be read from JSON: Type unions may not contain more than one"):
        codec_for(A | B)
    with pytest.raises(InvalidArgument, match=r"Event'>\. Set `arbitrary_types_allowed"):
        codec_for(list[Envelope | Event])
    with pytest.raises(InvalidArgument, match="may not contain any additional types"):
        codec_for(object | int)


def test_a_typed_dict_in_a_union_with_a_model_is_read_or_refused_with_the_one_to_use() -> None:
    data = b'{"street": "a", "number": 1}'
    assert codec_for(Place | Group).decode(data, what="it") == {"street": "a", "number": 1}

    async def visit(ctx: Context, to: Address | Group) -> None: ...

    if sys.version_info >= (3, 12):
        assert workflow("visit")(visit).input_codec.decode(data, what="it") == {"street": "a", "number": 1}
        return
    with pytest.raises(InvalidArgument) as caught:
        codec_for(Address | Group)
    assert "Please use `typing_extensions.TypedDict` instead of `typing.TypedDict`" in str(caught.value)
    assert "Use dataclasses" not in str(caught.value)


class Trip(pydantic.BaseModel):
    to: "Stop"


@pydantic.dataclasses.dataclass
class Journey:
    to: "Stop"


class Stop(TypedDict):
    street: str


@pytest.mark.parametrize("model", [Trip, Journey])
def test_a_typed_dict_that_a_model_names_before_it_is_defined_is_read_or_refused_with_the_one_to_use(
    model: type[Any],
) -> None:
    if sys.version_info >= (3, 12):
        assert codec_for(model).decode(b'{"to": {"street": "a"}}', what="it").to == {"street": "a"}
        return
    with pytest.raises(InvalidArgument) as caught:
        codec_for(model)
    assert "Please use `typing_extensions.TypedDict` instead of `typing.TypedDict`" in str(caught.value)
    assert "Use dataclasses" not in str(caught.value)


def test_a_model_may_name_what_is_defined_after_the_workflow() -> None:
    assert codec_for(Early).decode(b'{"late": {"x": 1}}', what="it") == Early(late=Late(x=1))


class Early(pydantic.BaseModel):
    late: "Late"


codec_for(Early)


class Late(pydantic.BaseModel):
    x: int


@pytest.mark.parametrize("data", [b"null", b'{"a": null}', b"123456789012345678901234567890", b" [1] "])
def test_json_that_is_written_already_stays_as_it_is(data: bytes) -> None:
    assert ANY.encode(msgspec.Raw(data), what="input") == data


def returns_point(a: int, b: int) -> "Point":
    return Point(a, b)


async def returns_user() -> User:
    return USER


class Methods:
    def method(self) -> Point:
        return Point(1)

    def __call__(self) -> UUID:
        return UUID(int=1)


def returns_any() -> Any:
    return None


@pytest.mark.parametrize("fn", [lambda: 1, len, lambda: returns_any() or 1])
def test_what_functions_that_say_nothing_return_is_not_known(fn: Any) -> None:
    assert facts_of(fn).codec is UNTYPED


def unresolvable() -> "Missing":  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
    return None


@pytest.mark.parametrize(
    ("fn", "is_async", "annotation"),
    [
        (returns_point, False, Point),
        (partial(returns_point, 1), False, Point),
        (partial(partial(returns_point, 1), b=2), False, Point),
        (returns_user, True, User),
        (partial(returns_user), True, User),
        (Methods().method, False, Point),
        (Methods(), False, UUID),
        (Point, False, Point),
        (returns_any, False, Any),
    ],
)
def test_what_functions_say_about_their_results(fn: Any, is_async: bool, annotation: Any) -> None:
    facts = facts_of(fn)
    assert (facts.is_async, facts.codec) == (is_async, codec_for(annotation))


def test_equal_code_with_other_annotations_is_told_apart() -> None:
    def make(kind: Any) -> Any:
        def inner() -> kind:
            return None

        return inner

    assert facts_of(make(int)).codec is codec_for(int)
    assert facts_of(make(str)).codec is codec_for(str)


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    script = (
        "import sys, kagzi.sdk.worker.executor; assert 'pydantic' not in sys.modules and 'attrs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# --- dataclasses that need pydantic -----------------------------------------------------------------------------------


@dataclass
class Text:
    content: str
    part_kind: Literal["text"] = "text"


@dataclass
class ToolCall:
    tool: str
    at: datetime
    data: bytes = b"\x00abc"
    part_kind: Literal["tool-call"] = "tool-call"


Part = Annotated[Text | ToolCall, pydantic.Discriminator("part_kind")]


@dataclass
class Response:
    """As libraries write them that check their types with pydantic."""

    parts: list[Part]
    usage: dict[str, int] = field(default_factory=dict[str, int])


@pytest.mark.parametrize("annotation", [Response, list[Response], Response | None], ids=["one", "list", "optional"])
def test_a_dataclass_with_unions_that_pydantic_tells_apart(annotation: Any) -> None:
    value: Any = Response([Text("hello"), ToolCall("search", datetime(2026, 1, 1, tzinfo=UTC))], {"tokens": 3})
    value = [value] if annotation == list[Response] else value
    codec = codec_for(annotation)
    data = codec.encode(value, what="output")
    assert codec.decode(data, what="output") == value
    assert codec.read_back(value, data, what="output") == value
    with pytest.raises(InvalidArgument, match="output does not fit"):
        codec.decode(b'[{"parts": [{"part_kind": "other"}]}]', what="output")


@dataclass
class Undecided:
    parts: list[Text | ToolCall]


def test_without_a_discriminator_the_error_is_short_and_names_a_remedy() -> None:
    with pytest.raises(InvalidArgument, match=r"^Undecided cannot be read from JSON: .*RootModel") as caught:
        codec_for(Undecided)
    assert len(str(caught.value)) < 600

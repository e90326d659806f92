"""Values as Python source: they come back equal, and ruff leaves the file as it is."""

import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Flag, IntEnum, auto
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from kagzi.testing.to_pytest.literals import is_exact, literal
from kagzi.testing.to_pytest.names import Names
from kagzi.testing.to_pytest.source import call, lay_out
from tests.testing.to_pytest import models
from tests.testing.to_pytest.models import Colour, Item, Order, Outer


class Pair(NamedTuple):
    left: int
    right: "list[str]"


class Point(msgspec.Struct):
    x: int
    label: str = ""


@attrs.define
class Box:
    inside: int
    weight: float = 0.5


class User(BaseModel):
    name: str
    tags: set[str] = set()


class Aliased(BaseModel):
    name: str = Field(alias="the-name")


class Level(IntEnum):
    LOW = auto()


class Rights(Flag):
    READ = auto()
    WRITE = auto()


class Own:
    """Neither a model nor anything that has a JSON form."""


VALUES: list[object] = [
    None, True, 0, -17, 10**20, 1.5, -1e300, 1e16, "", "it's", 'say "hi"', "both ' and \"", "a\nb\t\0\\ üß 🎉\x7f",
    b"", b"a'b\xff",
    [], (), (1,), {}, set[int](), {1, 2}, frozenset({"a"}), frozenset[int](), [1, [2, (3, {"a": None})]],
    {"a b": {1: [2]}, "z": ()},
    datetime(2026, 3, 29, 2, 30, 1, 5, tzinfo=UTC), datetime(2026, 3, 29),
    datetime(2026, 3, 29, tzinfo=timezone(timedelta(hours=2))),
    date(2026, 1, 2), time(1, 2, 3), timedelta(days=-1, seconds=3, microseconds=7), timedelta(),
    UUID(int=5), Decimal("1.50"), Colour.RED, Level.LOW, Rights.READ, Rights.READ | Rights.WRITE,
    Item(sku="kettle", quantity=2), Order(customer="ada", items=[Item(sku="tin")], total=9.5),
    Outer.Inner(value=1), Pair(1, ["x"]),
    Point(x=1), Box(inside=3), User(name="ada", tags={"b", "a"}),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)  # of a set not even the repr is sure
def test_a_value_comes_back_equal(value: Any) -> None:
    assert _evaluated(value) == value
    assert type(_evaluated(value)) is type(value)


def test_what_has_no_constructor_in_reach_is_written_as_its_json() -> None:
    class Local(msgspec.Struct):
        items: list[Item]

    names = Names()
    assert "\n".join(lay_out("", literal(Local([Item("tin")]), names))) == '{"items": [{"sku": "tin", "quantity": 1}]}'
    assert names.lines() == []  # of Item, which could have been imported
    assert not is_exact(Local([]), names)
    assert not is_exact(Own(), names)
    assert _evaluated(Aliased.model_validate({"the-name": "ada"})) == {"the-name": "ada"}
    assert _evaluated(models.Odd("a")) == {"text": "A"}


def test_two_classes_of_one_name_have_two_names_in_the_file() -> None:
    names = Names(taken=("asyncio",))
    assert names.name("shop", "Order") == "Order"
    assert names.name("bank", "Order") == "Order_2"
    assert names.name("shop", "Order.Line") == "Order.Line"
    assert names.name("mine", "asyncio") == "asyncio_2"
    names.module("asyncio")
    names.name("datetime", "datetime")
    names.name("kagzi.testing", "RecordedRun")
    assert names.lines() == [
        "import asyncio",
        "from datetime import datetime",
        "",
        "from kagzi.testing import RecordedRun",
        "",
        "from bank import Order as Order_2",
        "from mine import asyncio as asyncio_2",
        "from shop import Order",
    ]


_atoms = st.none() | st.booleans() | st.integers() | st.text(max_size=120) | st.binary(max_size=30) | st.datetimes()
_values = st.recursive(
    _atoms | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=90), inner, max_size=4)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.builds(Order, customer=st.text(), items=st.just([]), total=st.just(1.0))
    ),
    max_leaves=12,
)


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(values=st.lists(_values, min_size=25, max_size=25))
def test_ruff_leaves_any_value_as_it_was_written(values: list[Any]) -> None:
    names = Names()
    lines = [line for value in values for line in lay_out("", call("keep", [literal(value, names)]))]
    lines += [line for value in values for line in lay_out("", literal([value, value], names), depth=0)]
    source = "\n".join([*names.lines(), *([""] if names.lines() else []), *lines, ""])
    compile(source, "test", "exec")
    _assert_formatted(source)


def _assert_formatted(source: str) -> None:
    ruff = [str(Path(sys.executable).parent / "ruff"), "format", "--isolated", "--no-cache", "-"]
    formatted = subprocess.run(ruff, input=source.encode(), capture_output=True, check=True)
    assert formatted.stdout.decode() == source


def _evaluated(value: Any) -> Any:
    names = Names()
    node = literal(value, names)
    scope: dict[str, Any] = {}
    exec("\n".join([*names.lines(), *lay_out("value = ", node)]), scope)  # noqa: S102  it is our own
    return scope["value"]

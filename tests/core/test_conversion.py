"""Records built from other things by the names of their fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from kagzi.core.conversion import Field, compiled, converter, copier


class Person(msgspec.Struct, frozen=True):
    name: str
    age: int | None = None


@dataclass(frozen=True)
class Pet:
    name: str
    legs: int = 4


def _by_name(field: Field) -> Callable[[Mapping[str, Any]], Any]:
    if field.default is msgspec.NODEFAULT:
        return lambda source: source[field.name]
    return lambda source: source.get(field.name, field.default)


def test_every_field_is_read_by_its_name() -> None:
    read = converter(Person, _by_name)
    assert read({"name": "Ada", "age": 36, "more": 1}) == Person("Ada", 36)
    assert read({"name": "Ada"}) == Person("Ada")
    assert converter(Pet, _by_name)({"name": "Rex"}) == Pet("Rex", 4)


def test_what_is_written_out_is_read_that_way() -> None:
    read = converter(Person, _by_name, name=lambda source: source["first"].title())
    assert read({"first": "ada", "age": 1}) == Person("Ada", 1)


def test_what_cannot_be_read_is_reported_at_once() -> None:
    def nothing(field: Field) -> Callable[[object], Any]:
        raise TypeError(f"no way to read {field.name}")

    with pytest.raises(TypeError, match="no way to read name"):
        converter(Person, nothing)
    with pytest.raises(TypeError, match="Person has no field nick"):
        converter(Person, _by_name, nick=str)


def test_a_copier_copies_fields_and_takes_the_others_by_name() -> None:
    copy = copier(Person, ["name"])
    assert copy(Pet("Rex"), age=3) == Person("Rex", 3)
    assert copy(Pet("Rex")) == Person("Rex", None)
    with pytest.raises(TypeError, match="legs"):
        copy(Pet("Rex"), legs=4)
    with pytest.raises(TypeError, match="name"):
        copier(Person, ["age"])(Person("Ada", 36))


def test_a_compiled_function_has_the_names_that_it_was_given_and_no_others() -> None:
    assert compiled("number", "number + offset", offset=2)(3) == 5
    with pytest.raises(NameError, match="open"):
        compiled("path", "open(path)")("file")

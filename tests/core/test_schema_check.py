"""What a schema refuses, in which words; and that no schema or value can make a check expensive, or wrong."""

import json
import time
from typing import Any

import pytest

from kagzi.core.limits import CHECKED_PAYLOAD_BYTES, SCHEMA_BYTES, SCHEMA_VISITS
from kagzi.core.records import Payload
from kagzi.core.workflow_types.schema_check import SchemaCheck, Visits

MOST_S = 0.5
"""Of the processor: ten times what the most expensive check takes."""

ORDER: dict[str, Any] = {
    "$ref": "#/$defs/Order",
    "$defs": {
        "Order": {
            "type": "object",
            "properties": {
                "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                "colour": {"enum": ["red", "blue"]},
                "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
            },
            "required": ["items"],
            "additionalProperties": False,
        },
        "Item": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}, "required": ["price"]},
    },
}


def misfit(schema: Any, value: Any) -> str | None:
    refusal = SchemaCheck(json.dumps(schema)).misfit(Payload(json.dumps(value).encode()), "input")
    return None if refusal is None else str(refusal)


CASES: list[tuple[Any, str | None]] = [
    ({"items": []}, None),
    ({"items": [{"price": 1}, {"price": 2.5, "more": 1}], "colour": "red", "note": None}, None),
    ({"items": [{"price": 1}, {"price": 2}, {"price": "3"}]}, "input.items[2].price: expected number, got string"),
    ({"items": [{"price": -1}]}, "input.items[0].price: -1 is less than 0"),
    ({"items": [{}]}, 'input.items[0]: the field "price" is missing'),
    ({}, 'input: the field "items" is missing'),
    ({"items": [], "colour": "green"}, 'input.colour: expected one of "red" or "blue", got "green"'),
    ({"items": [], "notes": ""}, "input.notes: there is no such field"),
    ({"items": [], "note": "too long"}, 'input.note: "too long" is longer than 5'),
    ({"items": [], "note": 5}, "input.note: expected string or null, got number"),
    ([], "input: expected object, got array"),
    (None, "input: expected object, got null"),
]


@pytest.mark.parametrize(("value", "why"), CASES)
def test_a_refusal_names_the_place_and_what_is_expected_there(value: Any, why: str | None) -> None:
    assert misfit(ORDER, value) == why


def test_no_payload_is_null() -> None:
    assert str(SchemaCheck('{"type":"integer"}').misfit(None, "input")) == "input: expected a whole number, got null"
    assert SchemaCheck('{"type":["integer","null"]}').misfit(None, "input") is None


def test_what_cannot_be_told_is_let_through() -> None:
    check = SchemaCheck('{"type":"integer"}')
    assert check.misfit(Payload(b'"x"', {"encoding": "aes"}), "input") is None
    assert check.misfit(Payload(b"not JSON"), "input") is None
    assert check.misfit(Payload(b'"' + b"x" * CHECKED_PAYLOAD_BYTES + b'"'), "input") is None


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "not JSON",
        "[]",
        '{"$ref": "https://example.com/schema.json"}',
        '{"$ref": "#/$defs/Missing"}',
        '{"$ref": "#"}',
        '{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}',
        '{"type": 5}',
        '{"type": ["integer", {}]}',
        '{"type": "made-up"}',
        '{"pattern": "(a+)+$", "format": "email", "multipleOf": 0.1, "not": {}}',
        '{"properties": 5, "required": {}, "items": 3, "prefixItems": 4, "enum": 5, "anyOf": [], "minimum": "x"}',
        '{"type": "string", "x-kagzi-accepts": "any"}',
        '{"allOf": ' * 200 + "{}" + "}" * 200,
    ],
)
def test_a_schema_that_is_not_understood_accepts_everything(schema: str) -> None:
    for data in (b"null", b"1", b'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"', b"[[1]]", b'{"a": {}}'):
        assert SchemaCheck(schema).misfit(Payload(data), "input") is None


def test_a_check_looks_at_so_many_values_at_most() -> None:
    """Each level would double the work."""
    nested: dict[str, Any] = {"$defs": {"d0": {"type": "integer"}}, "$ref": "#/$defs/d40"}
    for level in range(1, 41):
        below = {"$ref": f"#/$defs/d{level - 1}"}
        nested["$defs"][f"d{level}"] = {"anyOf": [below, below]}
    assert misfit(nested, "x") is None  # given up
    assert misfit({"type": "array", "items": {"type": "integer"}}, [*[1] * SCHEMA_VISITS, "x"]) is None
    assert misfit({"type": "array", "items": {"type": "integer"}}, [*[1] * 100, "x"]) is not None


def _alternatives(levels: int, inner: Any) -> dict[str, Any]:
    """Each level has three alternatives, all of them the level below."""
    definitions: dict[str, Any] = {"d0": inner}
    for level in range(1, levels):
        definitions[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 3}
    return {"$defs": definitions, "$ref": f"#/$defs/d{levels - 1}"}


NAMES = [str(number) for number in range(4_000)]

EXPENSIVE: dict[str, tuple[Any, Any]] = {
    "choices": ({"items": {"enum": [1] * 32_000 + [2]}}, [2] * 32_000),
    "choices that are lists": ({"items": {"enum": [[1]] * 15_000 + [[]]}}, [[]] * 20_000),
    "types": ({"items": {"allOf": [{"type": "number"}] * 3_200}}, [2] * 32_000),
    "limits": ({"items": {"allOf": [{"minimum": 1}] * 4_000}}, [2] * 32_000),
    "required fields": (_alternatives(12, {"required": [*NAMES, "missing"]}), dict.fromkeys(NAMES, 1)),
}


@pytest.mark.parametrize("name", EXPENSIVE)
def test_no_schema_and_no_value_make_a_check_expensive(name: str) -> None:
    """One step of the check counts as much as what it costs."""
    schema, value = EXPENSIVE[name]
    text, payload = json.dumps(schema, separators=(",", ":")), json.dumps(value, separators=(",", ":")).encode()
    assert len(text) <= SCHEMA_BYTES
    assert len(payload) <= CHECKED_PAYLOAD_BYTES
    check = SchemaCheck(text)
    began = time.process_time()
    check.misfit(Payload(payload), "input")
    assert time.process_time() - began < MOST_S


def test_a_schema_that_contains_itself_is_checked_as_far_as_it_goes() -> None:
    """Python's own limit of how deep calls go is reached before the check's."""
    itself: dict[str, Any] = {"$ref": "#/$defs/itself"}
    nested = itself
    for _ in range(60):
        nested = {"allOf": [nested, {"type": "object"}]}
    assert misfit({**itself, "$defs": {"itself": nested}}, {}) is None


def test_a_refusal_is_short_whatever_is_refused() -> None:
    value: Any = "x" * 1_000
    schema: Any = {"enum": ["a", "b"]}
    for level in range(30):
        value = {"k" * 1_000: value, "level": level}
        schema = {"anyOf": [{"properties": {"k" * 1_000: schema}}, {"properties": {"level": {"type": "string"}}}]}
    assert len(misfit(schema, value) or "") < 30 * 61 + 500


def test_checks_that_share_visits_end_together() -> None:
    check = SchemaCheck('{"items": {"type": "integer"}}')
    payload = Payload(json.dumps([1] * 15_000 + ["x"]).encode())
    visits = Visits()
    assert check.misfit(payload, "input", visits) is not None
    assert check.misfit(payload, "input", visits) is None  # given up


def test_a_lax_reader_is_asked_only_for_shapes_and_fields() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 5}, "list": {"type": "array", "items": {"type": "string"}}},
        "required": ["n"],
        "additionalProperties": False,
        "x-kagzi-accepts": "lax",
    }
    assert misfit(schema, {"n": "3", "list": [1], "other": 1}) is None
    assert misfit(schema, {"n": None}) == "input.n: expected a whole number, got null"
    assert misfit(schema, {"n": 1, "list": "x"}) == "input.list: expected array, got string"
    assert misfit(schema, {"list": []}) == 'input: the field "n" is missing'
    assert misfit({**schema, "x-kagzi-accepts": "lax-names"}, {"list": []}) is None


def test_a_pattern_is_not_tried() -> None:
    """It comes from a worker: `^(a+)+$` would keep the server busy for ever."""
    check = SchemaCheck('{"type": "string", "pattern": "^(a+)+$", "patternProperties": {"^(a+)+$": {"type": "null"}}}')
    assert check.misfit(Payload(b'"' + b"a" * 64 + b'!"'), "input") is None
    assert check.misfit(Payload(b"1"), "input") is not None

"""JSON Schema of pydantic models. Nothing here imports pydantic: see workflow/models.py.

Pydantic accepts more than its schema says: "1" for a number, fields by name as well as by alias, and whatever
validators accept. The parts of its core schema show how far the JSON schema can be relied on.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ...core.workflow_types.schema_check import ACCEPTS, ACCEPTS_ANY, ACCEPTS_LAX, ACCEPTS_LAX_NAMES

# Kinds of core schema that refuse null, objects or arrays if their JSON schema does not name such a type. Others, such
# as validators that run before or around, may accept anything.
_RELIABLE = frozenset(
    """
    any bool bytes dataclass dataclass-args dataclass-field date datetime decimal default definition-ref definitions
    dict enum float frozenset function-after int json-or-python lax-or-strict list literal model model-field
    model-fields no-info none nullable set str tagged-union time timedelta tuple typed-dict typed-dict-field union url
    uuid with-info
    """.split()  # noqa: SIM905  a list of words is easier to read
)
_NOT_SCHEMAS = frozenset({"metadata", "serialization", "cls", "default", "expected", "members", "config", "function"})
_SHAPE = frozenset({"type", "properties", "required", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$ref"})
_ALIASES = ("validation_alias", "alias")


def of_model(model: Any, *, prefix: str = "") -> dict[str, Any]:
    """`prefix`: of the names of its definitions, in a document with others."""
    template = f"#/$defs/{prefix}{{model}}"
    if hasattr(model, "model_json_schema"):
        document = cast("dict[str, Any]", model.model_json_schema(ref_template=template, mode="validation"))
    else:  # a dataclass
        document = cast("dict[str, Any]", _adapter(model).json_schema(ref_template=template, mode="validation"))
    if prefix and "$defs" in document:
        document["$defs"] = {prefix + name: each for name, each in document["$defs"].items()}
    document[ACCEPTS] = _accepted(model.__pydantic_core_schema__)
    return document


def of_any(annotation: Any) -> dict[str, Any]:
    adapter = _adapter(annotation)
    document = cast("dict[str, Any]", adapter.json_schema(mode="validation"))
    document[ACCEPTS] = _accepted(adapter.core_schema)
    return document


def _adapter(annotation: Any) -> Any:
    return sys.modules["pydantic"].TypeAdapter(annotation)


def _accepted(core_schema: Any) -> str:
    parts = list(_parts(core_schema))
    if not all(_is_reliable(part) for part in parts):
        return ACCEPTS_ANY
    return ACCEPTS_LAX_NAMES if any(name in part for part in parts for name in _ALIASES) else ACCEPTS_LAX


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Every schema within a core schema."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            part = cast("dict[str, Any]", value)
            yield part
            pending.extend(each for key, each in part.items() if key not in _NOT_SCHEMAS)
        elif isinstance(value, (list, tuple)):
            pending.extend(cast("list[Any]", value))


def _is_reliable(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    if isinstance(kind, str) and kind not in _RELIABLE:
        return False
    if part.get("custom_init") or part.get("on_error", "raise") != "raise" or (kind == "enum" and "missing" in part):
        return False
    return _is_described_as_it_is(part.get("metadata"))


def _is_described_as_it_is(metadata: Any) -> bool:
    """Whether the JSON schema of types and fields was not customised."""
    if not isinstance(metadata, dict):
        return True
    notes = cast("dict[str, Any]", metadata)
    updates = cast("dict[str, Any]", notes.get("pydantic_js_updates") or {})
    if notes.get("pydantic_js_extra") or not _SHAPE.isdisjoint(updates):
        return False
    functions = cast("list[Any]", notes.get("pydantic_js_functions") or [])
    return all(getattr(each, "__func__", each) is _usual() for each in functions)


def _usual() -> Any:
    """The default JSON schema hook of models."""
    return sys.modules["pydantic"].BaseModel.__get_pydantic_json_schema__.__func__

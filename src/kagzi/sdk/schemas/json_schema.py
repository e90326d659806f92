"""JSON Schema of annotations, made by msgspec or pydantic, whichever decodes their values.

Schemas serve users, forms, and servers, which refuse values that a worker could not decode. Where decoders accept more
than the schema says, it is noted in the schema: see core/workflow_types/schema_check.py.
"""

import enum
from typing import Any, cast

import msgspec
import msgspec.inspect

from ...core.limits import SCHEMA_BYTES
from ...core.workflow_types.schema_check import ACCEPTS, ACCEPTS_ANY
from ..workflow import models
from . import pydantic_schema

_DEFINITIONS = "$defs"
_WORDS_ONLY = frozenset({"title", "description", "examples", "default", "deprecated"})
_NULL_ALLOWED: dict[str, Any] = {"type": "null"}


def schema_of(annotation: Any, *, or_null: bool = False) -> str:
    """As JSON; empty if there is no schema, or if it allows everything. `or_null`: null is allowed as well."""
    try:
        document = _document(annotation)
    except Exception:  # noqa: BLE001  schemas are optional: the workflow works without
        return ""
    if not document:
        return ""
    if or_null:
        definitions = {_DEFINITIONS: document.pop(_DEFINITIONS)} if _DEFINITIONS in document else {}
        document = {"anyOf": [document, _NULL_ALLOWED], **definitions}
    return msgspec.json.encode(document).decode()


def is_too_large(schema: str) -> bool:
    return len(schema.encode()) > SCHEMA_BYTES


def _document(annotation: Any) -> dict[str, Any]:
    if models.is_pydantic(annotation):
        return pydantic_schema.of_model(annotation)
    definitions: dict[str, Any] = {}
    try:
        document = msgspec.json.schema(annotation, schema_hook=lambda kind: _custom(kind, definitions))
    except TypeError:
        if not models.mentions_pydantic(annotation):
            raise
        return pydantic_schema.of_any(annotation)  # unions of models: see the codec
    if definitions:
        document.setdefault(_DEFINITIONS, {}).update(definitions)
    if _reads_more_than_it_says(annotation):
        document[ACCEPTS] = ACCEPTS_ANY
    return document


def _custom(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """A type that msgspec does not support. Its definitions belong to the whole document."""
    if kind is object:
        return {}
    if not models.is_pydantic(kind):
        raise NotImplementedError(kind)
    document = pydantic_schema.of_model(kind, prefix=f"{kind.__module__}.{kind.__qualname__}.")
    definitions.update(document.pop(_DEFINITIONS, {}))
    return document


def _reads_more_than_it_says(annotation: Any) -> bool:
    """Whether parts of the schema were written by hand, or an enum accepts more than its values."""
    return _any_in(msgspec.inspect.type_info(annotation), set())


def _any_in(value: Any, seen: set[int]) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_any_in(each, seen) for each in cast("tuple[Any, ...]", value))
    if not isinstance(value, msgspec.Struct) or id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, msgspec.inspect.EnumType):
        return _missing_of(value.cls) is not _missing_of(enum.Enum)
    if isinstance(value, msgspec.inspect.Metadata):
        extra = cast("dict[str, Any]", value.extra_json_schema or {})
        if not _WORDS_ONLY.issuperset(extra):
            return True
    return any(_any_in(getattr(value, name), seen) for name in value.__struct_fields__)


def _missing_of(kind: Any) -> Any:
    """How an enum handles an unknown value."""
    return kind._missing_.__func__

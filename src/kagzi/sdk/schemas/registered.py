"""The schemas that a worker registers: of each workflow's input, output and signals, with its description."""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

from ...core.limits import SCHEMA_BYTES, SCHEMA_SIGNALS, SCHEMAS_BYTES
from ...core.records import Served
from ...core.workflow_types.schemas import TypeSchemas
from ..workflow.signals import Signal
from ..workflow.signatures import unwrap
from ..workflow.workflow import Workflow
from .json_schema import is_too_large, schema_of

logger = logging.getLogger("kagzi.worker")

_NO_INPUT = '{"type":"null"}'


def registered_schemas(workflows: Iterable[Workflow[Any, Any]]) -> Mapping[Served, TypeSchemas]:
    """The workflows that have schemas. A schema that is too large is left out, and so are those of the last workflows
    if all together are too large; the log says which."""
    schemas_by_type: dict[Served, TypeSchemas] = {}
    size = 0
    for workflow in workflows:
        schemas = schemas_of(workflow)
        size += sum(len(text) for text in _texts(schemas))
        if size > SCHEMAS_BYTES:
            logger.warning(
                "the schemas of workflow %r and those after it are not registered: together they are larger than the "
                "%d bytes that a worker may register. Divide the workflows among several workers.",
                workflow.name,
                SCHEMAS_BYTES,
            )
            break
        if schemas:
            schemas_by_type[Served(workflow.name, workflow.version)] = schemas
    return schemas_by_type


def schemas_of(workflow: Workflow[Any, Any]) -> TypeSchemas:
    input_schema = _NO_INPUT
    if workflow.has_input:
        input_schema = schema_of(workflow.input_type, or_null=workflow.input_is_optional)
    signals = {name: schema_of(signal.type) for name, signal in declared_signals(workflow).items()}
    kept = {name: _kept(schema, workflow, f"signal {name!r}") for name, schema in signals.items()}
    description = (inspect.getdoc(unwrap(workflow.fn)) or "").replace("\0", "")
    return TypeSchemas(
        description=description.encode()[:SCHEMA_BYTES].decode(errors="ignore"),
        input_schema=_kept(input_schema, workflow, "its input"),
        output_schema=_kept(schema_of(workflow.output_type), workflow, "its output"),
        signal_schemas={name: schema for name, schema in list(kept.items())[:SCHEMA_SIGNALS] if schema},
    )


def _kept(schema: str, workflow: Workflow[Any, Any], what: str) -> str:
    if not is_too_large(schema):
        return schema
    logger.warning(
        "workflow %r: the schema of %s is larger than %d bytes and is not registered. It works; values are not checked "
        "where they are sent, and no form can be shown.",
        workflow.name,
        what,
        SCHEMA_BYTES,
    )
    return ""


def _texts(schemas: TypeSchemas) -> Iterator[str]:
    yield schemas.description
    yield schemas.input_schema
    yield schemas.output_schema
    yield from schemas.signal_schemas.values()


def declared_signals(workflow: Workflow[Any, Any]) -> dict[str, Signal[Any]]:
    """The signals given to @workflow, and those that its function refers to by a global name. A name with signals of
    different types is left out, unless it was given."""
    mentioned: dict[str, Signal[Any] | None] = {}
    for signal in _mentioned(unwrap(workflow.fn)):
        present = mentioned.setdefault(signal.name, signal)
        if present is not None and present.type is not signal.type:
            mentioned[signal.name] = None
    certain = {name: signal for name, signal in mentioned.items() if signal is not None}
    return certain | {signal.name: signal for signal in workflow.signals}


def _mentioned(fn: Callable[..., Any]) -> Iterator[Signal[Any]]:
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return
    values: dict[str, Any] = getattr(fn, "__globals__", {})
    names = list(_names(code))
    for name in names:
        value = values.get(name)
        if isinstance(value, Signal):
            yield value
        elif isinstance(value, ModuleType):
            members = (vars(value).get(member) for member in names)
            yield from (member for member in members if isinstance(member, Signal))
    for cell in getattr(fn, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if isinstance(value, Signal):
            yield value


def _names(code: CodeType) -> Iterator[str]:
    """Global names and attributes that the code uses, including those in nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)

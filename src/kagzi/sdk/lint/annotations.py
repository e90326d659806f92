"""Annotations without a JSON form: of inputs, outputs, results of steps, and signals. Needs the module to be loaded.

Arguments of steps stay in the process and are recorded for display only, so they may be of any type.
"""

import ast
import sys
from typing import Any, cast

import msgspec

from ...core.errors import InvalidArgument
from ..workflow import models
from ..workflow.codec import codec_for, type_name
from ..workflow.signals import Signal
from ..workflow.signatures import awaited_type, type_hints
from ..workflow.step import Step
from ..workflow.workflow import Workflow
from . import rules
from .report import Chain, Place, Report, UsedFunction
from .values import Function, Source

_INSTEAD = "Use a dataclass, msgspec.Struct, TypedDict, attrs or pydantic model, or return what you need of it."


def check_workflow(function: Function, workflow: Workflow[Any, Any], report: Report) -> None:
    """Checks input and output. The worker also refuses types that cannot be decoded at all."""
    parameters = function.parameters if function.owner is None else function.parameters[1:]
    used = UsedFunction(function, Chain(workflow.name))
    if workflow.has_input and len(parameters) > 1:
        what = f"input of workflow {workflow.name!r}"
        _check(workflow.input_type, what, used, parameters[1].annotation, report)
    _check(workflow.output_type, f"output of workflow {workflow.name!r}", used, _returns(function), report)


def check_step(used: UsedFunction, report: Report) -> None:
    """Checks the result of a function that is used as a step, if its module is loaded."""
    step = loaded(used.function)
    fn = cast("Step[..., Any]", step).fn if isinstance(step, Step) else step
    if callable(fn) and not isinstance(fn, type):
        hint = awaited_type(type_hints(fn).get("return", Any))
        _check(hint, f"result of step function {used.function.name}()", used, _returns(used.function), report)


def check_signals(source: Source, report: Report) -> None:
    """Checks the signals that a module defines."""
    module = vars(sys.modules[source.name]) if source.name in sys.modules else {}
    for statement in source.tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        value = module.get(statement.targets[0].id)
        if isinstance(value, Signal) and isinstance(statement.value, ast.Call):
            signal: Signal[Any] = cast("Any", value)
            reason = unserialisable(signal.type)
            if reason:
                message = f"a signal {signal.name!r} cannot be sent: {reason}."
                place = Place(source, statement.value, statement)
                report.add(rules.UNSERIALISABLE, place, Chain(""), message, _INSTEAD)


def loaded(function: Function) -> object:
    """The object in this process of a function of a module; None if its name does not lead to it."""
    module = sys.modules.get(function.source.name)
    if module is None or getattr(module, "__file__", None) != function.source.file:
        return None
    if function.owner is not None:
        owner = vars(module).get(function.owner.node.name)
        return vars(owner).get(function.name) if isinstance(owner, type) else None
    return vars(module).get(function.name) if function.outer is function.source.env else None


def unserialisable(annotation: Any) -> str:
    """Why values of this type cannot be recorded; empty if they can."""
    try:
        codec_for(annotation)
    except InvalidArgument as error:
        return str(error).partition(". Use ")[0]
    if models.is_pydantic(annotation):
        return ""
    try:
        import msgspec.inspect  # noqa: PLC0415  workers load it with their first schema

        custom = _custom_type(msgspec.inspect.type_info(annotation), set())
    except Exception:  # noqa: BLE001  unions of models, which pydantic supports
        return ""
    return "" if custom is None else f"{type_name(custom)} has no JSON form"


def _custom_type(info: object, seen: set[int]) -> Any:
    """The first class in a type that neither msgspec nor pydantic supports."""
    if isinstance(info, (tuple, list)):
        each: Any
        for each in cast("tuple[Any, ...]", info):
            custom = _custom_type(each, seen)
            if custom is not None:
                return custom
        return None
    if not isinstance(info, msgspec.Struct) or id(info) in seen:
        return None
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        kind: Any = info.cls
        return None if kind is object or models.is_pydantic(kind) else kind
    return _custom_type(tuple(getattr(info, name) for name in info.__struct_fields__), seen)


def _returns(function: Function) -> ast.expr | None:
    return None if isinstance(function.node, ast.Lambda) else function.node.returns


def _check(annotation: Any, what: str, used: UsedFunction, node: ast.expr | None, report: Report) -> None:
    statement = used.function.node
    if node is None or isinstance(statement, ast.Lambda):
        return
    reason = unserialisable(annotation)
    if reason:
        place = Place(used.function.source, node, statement)
        report.add(rules.UNSERIALISABLE, place, used.chain, f"the {what} cannot be recorded: {reason}.", _INSTEAD)

"""A look at a workflow's code when a worker takes it up: what gives another answer on replay, or blocks the worker, is
named.

It only warns: the code may be in a branch that never runs, or a name may mean something else.
"""

import ast
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...core.public import exported
from .signatures import unwrap


@exported
class KagziWarning(UserWarning):
    """A warning about workflow code that works, but not as its author may think."""


class Finding(NamedTuple):
    file: str
    line: int
    message: str


_TIME = "returns another time on every replay. Use ctx.now()"
_CHANCE = "returns another value on every replay. Use ctx.random()"
_UUID = "returns another value on every replay. Use ctx.uuid()"
_BLOCKS = "blocks every run of this worker, and runs again on every replay. Put it into a step"
_RULES: dict[str, str] = {
    "datetime.now": _TIME,
    "datetime.utcnow": _TIME,
    "datetime.today": _TIME,
    "date.today": _TIME,
    "time.time": _TIME,
    "time.time_ns": _TIME,
    "uuid.uuid1": _UUID,
    "uuid.uuid4": _UUID,
    "uuid1": _UUID,
    "uuid4": _UUID,
    "os.urandom": _CHANCE,
    "time.sleep": 'blocks every run of this worker. Use await ctx.sleep("name", "5s")',
    "open": _BLOCKS,
    "input": _BLOCKS,
    "subprocess.run": _BLOCKS,
    "subprocess.check_output": _BLOCKS,
    "os.system": _BLOCKS,
}
_MODULES: dict[str, str] = {
    "random": _CHANCE,
    "secrets": _CHANCE,
    "requests": _BLOCKS,
    "httpx": _BLOCKS,
    "urllib": _BLOCKS,
}


_warned: dict[Any, Any] = {}  # Python's own record of what it need not say again


def warn_about(fn: Callable[..., Any]) -> None:
    """Issue a KagziWarning for every finding, at the line of the call: once, however many workers take the workflow
    up."""
    for finding in findings(fn):
        text = finding.message.removeprefix(f"{finding.file}:{finding.line}: ")  # Python says where by itself
        warnings.warn_explicit(text, KagziWarning, finding.file, finding.line, registry=_warned)


def findings(fn: Callable[..., Any]) -> list[Finding]:
    """What in the body of a workflow function is better done otherwise. Empty without source code."""
    target = inspect.unwrap(unwrap(fn))
    try:
        lines, first = inspect.getsourcelines(target)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        file = inspect.getsourcefile(target) or "?"
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return []  # no source to look at, or none that the parser could take (3.11 has a bug there): a warning less
    matches: list[Finding] = []
    for call in _calls(tree):
        name = _dotted(call.func)
        advice = _advice(name)
        if advice is not None:
            line = first + call.lineno - 1
            matches.append(Finding(file, line, f"{file}:{line}: {name}() in a workflow {advice}."))
    return matches


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that the workflow itself makes. Functions inside of it are mostly bodies of steps."""
    functions = [
        node for node in ast.iter_child_nodes(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    waiting: list[ast.AST] = [part for function in functions for part in function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Call):
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _advice(name: str) -> str | None:
    if not name:
        return None
    for known, advice in _RULES.items():
        if name == known or ("." in known and name.endswith("." + known)):
            return advice
    module, _, rest = name.partition(".")
    return _MODULES.get(module) if rest else None

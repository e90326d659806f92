"""An error is raised once. One that is kept, in an attribute or a variable of a module, and raised from there keeps the
frames of everybody who got it, and with them what they had sent: its traceback grows with each raise. What is kept of
an error is its class and its text."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src" / "kagzi"
GENERATED = "v1"
# Errors of an object that the function itself has made, and that ends with it.
KNOWN = {"cli/output.py": 1, "store/postgres/write/batch.py": 1}
READS = ("get", "setdefault", "copy")  # what remains in its container; `pop` takes it out


def test_no_error_is_kept_and_raised_from_there() -> None:
    violations: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE)
        lines = [] if name.parts[0] == GENERATED else kept_and_raised(path.read_text())
        if len(lines) > KNOWN.get(str(name), 0):
            violations += [f"{name}:{line}" for line in lines]
    assert not violations, f"raise a new error instead of one that is kept: {violations}"


def kept_and_raised(text: str) -> list[int]:
    module = ast.parse(text)
    variables = {name for node in module.body for name, _ in bindings(node)}
    lines: list[int] = []
    for scope in (
        module,
        *(node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)),
    ):
        kept = {name for node in own_nodes(scope) for name, value in bindings(node) if is_kept(value, set())}
        kept |= variables - {name for node in own_nodes(scope) for name, _ in bindings(node) if scope is not module}
        lines += [node.lineno for node in own_nodes(scope) for error in raised(node) if is_kept(error, kept)]
    return sorted(lines)


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Without the functions inside: those are scopes of their own."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from own_nodes(child)


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement binds, each with the value it comes from."""
    match node:
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from paired(target, value)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.For(target=ast.Name(id=name), iter=value):
            yield name, value
        case _:
            return


def paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            taken = {ast.unparse(each) for each in targets}
            for one, of in zip(targets, values, strict=True):
                if ast.unparse(of) not in taken:  # `error, self._error = self._error, None` takes it out
                    yield from paired(one, of)
        case ast.Tuple(elts=targets), _:
            for one in targets:
                yield from paired(one, value)
        case _:
            return


def raised(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Raise(exc=ast.expr() as error):
            yield error
        case ast.Call(func=ast.Attribute(attr="set_exception"), args=[error]):
            yield error
        case _:
            return


def is_kept(value: ast.expr, kept: set[str]) -> bool:
    """Whether this reads an attribute or a name of `kept`, or something inside of one."""
    match value:
        case ast.Name(id=name):
            return name in kept
        case ast.Attribute(value=ast.Name(id=name), attr="exceptions"):
            return name in kept  # of a group that was caught: kept by nobody
        case ast.Attribute(attr=attr):
            return not attr[0].isupper()  # a class
        case ast.Subscript(value=inner):
            return is_kept(inner, kept)
        case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in READS:
            return is_kept(inner, kept)
        case ast.BoolOp(values=values):
            return any(is_kept(each, kept) for each in values)
        case ast.IfExp(body=body, orelse=other):
            return is_kept(body, kept) or is_kept(other, kept)
        case _:
            return False


PLANTED = """
FULL = ResourceExhausted("full")

class Access:
    def by_module(self):
        raise FULL

    def by_attribute(self):
        raise self._refusal from None

    def by_entry(self, digest):
        error, until_s = self._refused.get(digest, (None, 0.0))
        if error is not None:
            raise error

    def by_default(self):
        raise self._problem or Unavailable("away")

    def by_future(self, future):
        future.set_exception(self._problem)
"""
ALLOWED = """
class Access:
    def new(self):
        raise ResourceExhausted(self._text)

    def made(self):
        raise self._refusal()

    def taken(self):
        problem, self._problem = self._problem, None
        raise problem or self._errors.pop(0)

    def passed_on(self, error):
        raise error
"""


def test_the_rule_sees_what_it_is_about() -> None:
    assert kept_and_raised(PLANTED) == [6, 9, 14, 17, 20]
    assert kept_and_raised(ALLOWED) == []

"""A conformance test states one outcome: what may be this or that is not specified, and stores drift apart there."""

import ast
from collections.abc import Iterator
from pathlib import Path

CONFORMANCE = Path(__file__).resolve().parents[2] / "store" / "conformance"


# Races between processes: either comes first, and both are right. The numbers may only fall.
KNOWN = {"test_interleavings.py": 1, "test_retention.py": 1}


def test_no_conformance_test_accepts_alternatives() -> None:
    alternatives: dict[str, list[str]] = {}
    for path in sorted(CONFORMANCE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assert) and any(map(is_alternative, claims(node.test))):
                alternatives.setdefault(path.name, []).append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    more = [line for name, lines in alternatives.items() if len(lines) > KNOWN.get(name, 0) for line in lines]
    assert not more, "\n".join(more)


def claims(test: ast.expr) -> Iterator[ast.expr]:
    """What is asserted: `a and b` are two claims."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from claims(value)
    else:
        yield test


def is_alternative(claim: ast.expr) -> bool:
    match claim:
        case ast.BoolOp(op=ast.Or(), values=values):
            return all(any(map(is_outcome, claims(value))) for value in values)
        case ast.Compare(
            ops=[ast.In()], comparators=[ast.Tuple(elts=kinds) | ast.List(elts=kinds) | ast.Set(elts=kinds)]
        ):
            return len(kinds) > 1
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Tuple() | ast.BinOp(op=ast.BitOr())]):
            return True
        case _:
            return False


def is_outcome(claim: ast.expr) -> bool:
    """That something is this, or one of these: not that it is small enough."""
    match claim:
        case ast.Compare(ops=[ast.Eq() | ast.Is() | ast.In()]) | ast.Call(func=ast.Name(id="isinstance")):
            return True
        case _:
            return False


def test_the_rule_sees_what_it_is_about() -> None:
    def seen(text: str) -> bool:
        return any(map(is_alternative, claims(ast.parse(text, mode="eval").body)))

    assert seen("outcome in (Known(), Refused())")
    assert seen("outcome == Known() or outcome == Refused()")
    assert seen("seq == 1 and isinstance(outcome, Known | Refused)")
    assert not seen("'a' in steps and isinstance(outcome, Known)")
    assert not seen("size <= LIMIT or len(page) == 1")

"""A refusal by a limit names it in metadata["limit"] and says how much it allows in metadata["maximum"]: made in one place."""

import ast
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "kagzi"


def test_metadata_of_a_limit_is_made_by_one_function() -> None:
    found: list[str] = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "metadata" and isinstance(node.value, ast.Dict):
                names = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
                if "limit" in names or "maximum" in names:
                    found.append(f"{path.relative_to(SOURCES)}:{node.value.lineno}")
    assert not found, f"use limit_reached(name, maximum): {found}"

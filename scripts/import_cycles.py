"""Finds import cycles in src/kagzi: `python scripts/import_cycles.py`. Exit status 1 if there is one.

Counts every import statement, including those under TYPE_CHECKING and inside functions: a cycle that the interpreter
does not see is still one for readers. Prints each strongly connected component with its imports.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
PACKAGE = "kagzi"

Imports = dict[str, set[str]]  # by importing module


def find_modules(source: Path = SOURCE) -> dict[str, Path]:
    """The package's modules by dotted name; the name of a package means its `__init__`."""
    modules: dict[str, Path] = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def read_imports(modules: Mapping[str, Path]) -> Imports:
    return {
        name: {target for target in _targets(name, path, modules) if target != name} for name, path in modules.items()
    }


def _targets(name: str, path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            for alias in node.names:
                target = f"{base}.{alias.name}"
                if target in modules:
                    yield target
                elif base in modules:
                    yield base


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parents = parts[: len(parts) - node.level + 1]
    return ".".join([*parents, node.module] if node.module else parents)


def find_cycles(imports: Imports) -> list[list[str]]:
    """Strongly connected components of more than one module, largest first (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    components: list[list[str]] = []
    for root in imports:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = []
        _visit(root, imports, index, low, stack, on_stack, work)
        while work:
            module, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    component = _pop_component(module, stack, on_stack)
                    if len(component) > 1:
                        components.append(component)
            elif target not in index:
                _visit(target, imports, index, low, stack, on_stack, work)
            elif target in on_stack:
                low[module] = min(low[module], index[target])
    return sorted(components, key=len, reverse=True)


def _visit(  # noqa: PLR0917  the state of the search
    module: str,
    imports: Imports,
    index: dict[str, int],
    low: dict[str, int],
    stack: list[str],
    on_stack: set[str],
    work: list[tuple[str, Iterator[str]]],
) -> None:
    index[module] = low[module] = len(index)
    stack.append(module)
    on_stack.add(module)
    work.append((module, iter(sorted(imports[module]))))


def _pop_component(root: str, stack: list[str], on_stack: set[str]) -> list[str]:
    component: list[str] = []
    while not component or component[-1] != root:
        component.append(stack.pop())
        on_stack.discard(component[-1])
    return sorted(component)


def main() -> int:
    imports = read_imports(find_modules())
    cycles = find_cycles(imports)
    for cycle in cycles:
        print(f"import cycle of {len(cycle)} modules:")
        for module in cycle:
            print(f"  {module} -> {', '.join(sorted(imports[module] & set(cycle)))}")
    if not cycles:
        print(f"no import cycle among {len(imports)} modules")
    return 1 if cycles else 0


if __name__ == "__main__":
    sys.exit(main())

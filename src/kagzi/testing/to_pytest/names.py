"""The imports of a file, each under a unique name."""

import builtins
import importlib
import keyword
import sys
from collections import defaultdict

from .source import WIDTH


class Names:
    """`taken`: names that the file itself defines."""

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self._names: dict[tuple[str, str], str] = {}  # (module, name): the local name
        self._taken = {*dir(builtins), *keyword.kwlist, *taken}
        self._modules: set[str] = set()

    def copy(self) -> "Names":
        names = Names()
        names._names, names._taken, names._modules = dict(self._names), set(self._taken), set(self._modules)
        return names

    def module(self, module: str) -> str:
        """Add `import module`."""
        self._modules.add(module)
        self._taken.add(module)
        return module

    def name(self, module: str, name: str) -> str:
        """Add `from module import name`; `name` may be that of a nested class. Returns how to write it."""
        outer, dot, inner = name.partition(".")
        key = (module, outer)
        if key not in self._names:
            self._names[key] = self.own(outer)
        return f"{self._names[key]}{dot}{inner}"

    def own(self, name: str) -> str:
        """A name that is not used in the file: this one, or this one with a number."""
        unique, number = name, 2
        while unique in self._taken:
            unique, number = f"{name}_{number}", number + 1
        self._taken.add(unique)
        return unique

    def of(self, thing: type) -> str | None:
        """How to write a class or an exception; None if it cannot be imported."""
        module, name = thing.__module__, thing.__qualname__
        if module == "builtins":
            return name
        return self.name(module, name) if _is_importable(module, name, thing) else None

    def lines(self) -> list[str]:
        """Import statements: the standard library, then other packages, then the application's."""
        sections: dict[int, list[tuple[str, list[str]]]] = defaultdict(list)
        for module in self._modules:
            sections[_section(module)].append((module, [f"import {module}"]))
        names: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for (module, name), alias in self._names.items():
            names[module].append((name, alias))
        for module, pairs in names.items():
            written = [name if name == alias else f"{name} as {alias}" for name, alias in sorted(pairs, key=_order)]
            sections[_section(module)].append((module, _from(module, written)))
        lines: list[str] = []
        for section in sorted(sections):
            if lines:
                lines.append("")
            for _, statement in sorted(sections[section], key=lambda each: (each[1][0].startswith("from"), each[0])):
                lines += statement
        return lines


def _is_importable(module: str, name: str, thing: object) -> bool:
    if module == "__main__" or "<" in name:
        return False
    value: object
    try:
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return False
    return value is thing


def _order(pair: tuple[str, str]) -> tuple[int, str]:
    """Constants, classes, functions: the order of isort and ruff."""
    name = pair[0]
    if name.isupper() and len(name) > 1:
        return 0, name
    return (1, name) if name[:1].isupper() else (2, name)


def _section(module: str) -> int:
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names:
        return 0
    return 1 if root in ("kagzi", "pytest") else 2


def _from(module: str, names: list[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]

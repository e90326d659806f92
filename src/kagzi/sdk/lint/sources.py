"""Modules as source text: parsed once, found without importing them."""

import linecache
import sys
from pathlib import Path, PurePath

from . import names
from .values import UNKNOWN, Source, Value

_INSTALLED = {"site-packages", "dist-packages"}
_OWN_PACKAGE = __name__.partition(".")[0]
_SDK = ("kagzi.core.", "kagzi.sdk.")  # never part of the project, even for Kagzi's own workflows
_REEXPORTS_MAX = 5


class Sources:
    """The modules of a project that have been needed. `own`: top-level names that count as the project wherever they
    are installed."""

    def __init__(self) -> None:
        self._by_file: dict[str, Source | None] = {}
        self._by_name: dict[str, Source | None] = {}
        self._own: set[str] = set()
        self._roots: list[Path] = []

    def of_path(self, path: Path) -> Source:
        """A requested file. Raises OSError, SyntaxError, ValueError (not UTF-8, null bytes)."""
        file = str(path)
        known = self._by_file.get(file)
        if known is not None:
            return known
        root, name = module_name(path)
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        with path.open("rb") as stream:
            text = _decoded(stream.read())
        source = _parse(file, text, name, package)
        self._keep(source)
        if root not in self._roots:
            self._roots.append(root)
        return source

    def of_loaded(self, file: str, module: str, package: str, namespace: dict[str, object]) -> Source | None:
        """The module of a function of this process, even an interactive one. None without source text."""
        if file not in self._by_file:
            linecache.checkcache(file)
            text = "".join(linecache.getlines(file, namespace))
            self._by_file[file] = _parsed(file, text, module, package) if text else None
        source = self._by_file[file]
        if source is not None:
            self._keep(source)
        return source

    def _keep(self, source: Source) -> None:
        self._by_file[source.file] = source
        self._by_name.setdefault(source.name, source)
        self._own.add(source.name.partition(".")[0])

    def forget(self) -> None:
        """Drop all modules. Trees and names refer to each other: otherwise they would live until the next garbage
        collection, which would have to visit each of their nodes."""
        for source in (*self._by_file.values(), *self._by_name.values()):
            if source is not None:
                source.env.names.clear()
                source.tree.body.clear()
        self._by_file.clear()
        self._by_name.clear()

    def find(self, path: str) -> Value:
        """The value of a full name, if the project defines it."""
        for _ in range(_REEXPORTS_MAX):
            value, rest = self._defined(path)
            if value.origin != "import":
                return value
            path = f"{value.path}.{rest}" if rest else value.path
        return UNKNOWN

    def _defined(self, path: str) -> tuple[Value, str]:
        """The value in the innermost module of a full name, and the rest of the name, if it is imported there."""
        parts = path.split(".")
        if not self._may_be_ours(parts[0]) or path.startswith(_SDK):
            return UNKNOWN, ""
        for count in range(len(parts) - 1, 0, -1):
            source = self._module(".".join(parts[:count]))
            if source is None:
                continue
            value = source.env.names.get(parts[count], UNKNOWN)
            rest = parts[count + 1 :]
            if value.origin == "import":
                return value, ".".join(rest)
            for part in rest:
                value = names.attribute(value, part)
            return value, ""
        return UNKNOWN, ""

    def _may_be_ours(self, top: str) -> bool:
        return top in self._own or not (top == _OWN_PACKAGE or top in sys.stdlib_module_names)

    def _module(self, name: str) -> Source | None:
        if name not in self._by_name:
            self._by_name[name] = self._read(name)
        return self._by_name[name]

    def _read(self, name: str) -> Source | None:
        top = name.partition(".")[0]
        path = self._path(name)
        if path is None or (top not in self._own and _INSTALLED.intersection(PurePath(path).parts)):
            return None
        file = str(path)
        if file in self._by_file:
            return self._by_file[file]
        try:
            text = _decoded(path.read_bytes())
        except (OSError, ValueError, SyntaxError):
            return None
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        self._by_file[file] = _parsed(file, text, name, package)
        return self._by_file[file]

    def _path(self, name: str) -> Path | None:
        """The file that the import statement would find, without importing anything."""
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str):
            return Path(file) if file.endswith(".py") else None
        relative = Path(*name.split("."))
        for root in (*self._roots, *map(Path, sys.path)):
            for path in (root / relative.with_suffix(".py"), root / relative / "__init__.py"):
                if path.is_file():
                    return path
        return None


def module_name(path: Path) -> tuple[Path, str]:
    """Root directory and full name of the module in a file, by the packages that contain it."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) or path.stem


def _decoded(data: bytes) -> str:
    import importlib.util  # noqa: PLC0415  not loaded by workers, which read sources from linecache

    return importlib.util.decode_source(data)


def _parse(file: str, text: str, name: str, package: str) -> Source:
    source = Source(file, text, name, package)
    names.define(source.tree.body, source, source.env, module=True)
    return source


def _parsed(file: str, text: str, name: str, package: str) -> Source | None:
    """None if the source cannot be parsed; a bug of 3.11 shows as SystemError."""
    try:
        return _parse(file, text, name, package)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None

"""The default build id: a hash of the source code of a worker's workflows.

It covers the module of each workflow and, transitively, the modules of the same project that it imports. The hash
depends on the contents of the files only, not on their paths or names, so all machines with the same code have the
same build. ADR 0026.
"""

import hashlib
import importlib.machinery
import inspect
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import Any, NamedTuple, cast

logger = logging.getLogger("kagzi.worker")

MODULES = 2_000  # at most this many modules are hashed
SOURCE_BYTES = 64 * 1024 * 1024  # of all modules together
_DIGITS = 16
_PREFIX = "auto-"
_INSTALLED = {"site-packages", "dist-packages"}
_OWN_PACKAGE = __name__.partition(".")[0]
_PYC_HEADER_BYTES = 16  # contains the time of compilation

_COMMENT = re.compile(rb"#[^\n]*")
_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)


class _Module(NamedTuple):
    """The origin of a module, which need not be loaded. `folders`: where a package looks for its modules."""

    name: str
    package: str  # the base of its relative imports
    origin: str
    loader: Any
    folders: tuple[str, ...]
    identity: object  # the same while this process has the same code loaded; None: not loaded


class _Source(NamedTuple):
    digest: bytes
    size_bytes: int
    imports: tuple[str, ...]  # names that may be modules


_loaded: dict[str, tuple[object, _Source]] = {}  # sources of the modules that this process has loaded


def default_build_id(functions: Iterable[Callable[..., Any]], *, modules_max: int = MODULES) -> str:
    """The same for the same code on every machine; empty if none of the code can be found. Reads files, and never
    raises: for a function whose module has no source, its compiled code is hashed."""
    digests: set[bytes] = set()
    roots: set[str] = set()
    for function in map(inspect.unwrap, functions):
        module = _find(getattr(function, "__module__", None) or "")
        if module is not None and _read(module) is not None:
            roots.add(module.name)
        elif isinstance(code := getattr(function, "__code__", None), CodeType):
            digests.add(_digest_of_code(code))
    digests.update(_digests_of_project(roots, modules_max))
    if not digests:
        return ""
    return _PREFIX + hashlib.sha256(b"".join(sorted(digests))).hexdigest()[:_DIGITS]


def _digests_of_project(roots: set[str], modules_max: int) -> Iterator[bytes]:
    """Breadth first and in order of names, so that the limits leave out the same modules everywhere."""
    own = {root.partition(".")[0] for root in roots}
    seen = set(roots)
    level = sorted(roots)
    modules = size_bytes = 0
    while level:
        following: set[str] = set()
        for name in level:
            module = _find(name)
            if module is None or not (name in roots or _is_ours(module, own)):
                continue
            source = _read(module)
            if source is None:
                following.update(_parents(module.name))
                continue
            modules += 1
            size_bytes += source.size_bytes
            if modules > modules_max or size_bytes > SOURCE_BYTES:
                logger.warning(
                    "the default build id covers only the first %d modules (%d MiB) of this project: set "
                    "Worker(build_id=...)",
                    modules_max,
                    SOURCE_BYTES >> 20,
                )
                return
            yield source.digest
            following.update(_parents(module.name), source.imports)
        level = sorted(following - seen)
        seen |= following


def _is_ours(module: _Module, own: set[str]) -> bool:
    """Whether it belongs to the project: a package with workflows, wherever it is installed, or a module that is not
    part of Python, not installed and not Kagzi itself."""
    top = module.name.partition(".")[0]
    if top in own:
        return True
    if top == _OWN_PACKAGE or top in sys.stdlib_module_names:
        return False
    return not _INSTALLED.intersection(PurePath(module.origin).parts)


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


# --- finding modules without importing them ---------------------------------------------------------------------------


def _find(name: str) -> _Module | None:
    """None if there is no such module, or it cannot be determined."""
    module = sys.modules.get(name)
    if module is not None:
        return _of_loaded(name, module)
    top = name.partition(".")[0]
    if not name or top == _OWN_PACKAGE or top in sys.stdlib_module_names:
        return None
    path = None
    if "." in name:
        parent = _find(name.rpartition(".")[0])
        if parent is None or not parent.folders:
            return None
        path = list(parent.folders)
    spec = _spec_of(name, path)
    return None if spec is None else _of_spec(spec, _folders(spec.submodule_search_locations), None)


def _of_loaded(name: str, module: ModuleType) -> _Module | None:
    folders = _folders(getattr(module, "__path__", None))
    spec = getattr(module, "__spec__", None)
    if isinstance(spec, importlib.machinery.ModuleSpec):
        return _of_spec(spec, folders, spec)
    file = getattr(module, "__file__", None)  # a script: __main__ has a file, but no spec
    if not isinstance(file, str):
        return None
    return _Module(name, getattr(module, "__package__", None) or "", file, None, folders, module)


def _of_spec(spec: importlib.machinery.ModuleSpec, folders: tuple[str, ...], identity: object) -> _Module:
    origin = spec.origin if spec.has_location and spec.origin else ""
    return _Module(spec.name, spec.parent or "", origin, spec.loader, folders, identity)


def _folders(path: Iterable[str] | None) -> tuple[str, ...]:
    try:
        return tuple(path or ())
    except Exception:  # noqa: BLE001  a namespace package whose parent is not loaded
        return ()


def _spec_of(name: str, path: list[str] | None) -> importlib.machinery.ModuleSpec | None:
    """The spec that the import statement would find, without importing a parent."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = None if find is None else find(name, path, None)
        except Exception:  # noqa: BLE001  third-party finders may raise anything
            spec = None
        if isinstance(spec, importlib.machinery.ModuleSpec):
            return spec
    return None


# --- reading them -----------------------------------------------------------------------------------------------------


def _read(module: _Module) -> _Source | None:
    """None without a file (builtin, namespace package, interactive) and for an unreadable one. The source of a loaded
    module is cached: a change on disk does not change what this process executes."""
    known = _loaded.get(module.name)
    if known is not None and module.identity is not None and known[0] is module.identity:
        return known[1]
    data = _contents(module)
    if data is None:
        return None
    size_bytes = len(data)
    if module.origin.endswith((".py", ".pyw")):
        data = data.replace(b"\r\n", b"\n")
        imports = tuple(_imports(data, module.package))
    else:  # compiled: its imports cannot be read
        data = data[_PYC_HEADER_BYTES:] if module.origin.endswith(".pyc") else data
        imports = ()
    source = _Source(hashlib.sha256(data).digest(), size_bytes, imports)
    if module.identity is not None:
        _loaded[module.name] = (module.identity, source)
    return source


def _contents(module: _Module) -> bytes | None:
    if not module.origin:
        return None
    get_data = getattr(module.loader, "get_data", None)  # also works for archives
    try:
        return Path(module.origin).read_bytes() if get_data is None else bytes(get_data(module.origin))
    except Exception:  # noqa: BLE001  third-party loaders may raise anything
        return None


def _imports(source: bytes, package: str) -> Iterator[str]:
    """Names that the import statements of a source may refer to: for `from a import b` both a and a.b. Includes
    imports inside functions."""
    text = _COMMENT.sub(b"", source).replace(b"\\\n", b" ")
    for where, names, plain in _IMPORT.findall(text):
        if plain:
            for each in plain.decode("ascii", "replace").split(","):
                name = each.split()[0] if each.split() else ""
                yield name
                yield from _parents(name)
            continue
        base = _absolute(where.decode("ascii", "replace"), package)
        if not base:
            continue
        yield base
        yield from _parents(base)
        for each in names.decode("ascii", "replace").strip("() \t\n").split(","):
            if each.split() and each.split()[0].isidentifier():
                yield f"{base}.{each.split()[0]}"


def _absolute(name: str, package: str) -> str:
    """Resolves a relative name: `..words` in a.b.c is a.words. Empty if it leads out of the top package."""
    rest = name.lstrip(".")
    level = len(name) - len(rest)
    if not level:
        return name
    parts = package.split(".") if package else []
    if len(parts) < level:
        return ""
    base = parts[: len(parts) - level + 1]
    return ".".join([*base, rest] if rest else base)


def _digest_of_code(code: CodeType) -> bytes:
    """The same in every process, unlike the order of a frozenset."""
    digest = hashlib.sha256(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            digest.update(_digest_of_code(constant))
        elif isinstance(constant, frozenset):
            digest.update(repr(sorted(map(repr, cast("frozenset[object]", constant)))).encode())
        else:
            digest.update(repr(constant).encode())
    return digest.digest()

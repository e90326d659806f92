"""Loads the workflows to serve: `app.py`, `app.flows`, `app:worker`."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeGuard

import click

from ...sdk.worker.worker import Worker
from ...sdk.workflow.workflow import Workflow


class Target(NamedTuple):
    """A module by name, or a file by path; optionally one of its attributes."""

    module: str
    attribute: str
    path: Path | None

    def __str__(self) -> str:
        where = str(self.path) if self.path else self.module
        return f"{where}:{self.attribute}" if self.attribute else where


class Loaded(NamedTuple):
    """The content of a target: a Worker to run, with its workflows, or workflows to create one for."""

    worker: Worker | None
    workflows: tuple[Workflow[Any, Any], ...]

    def worker_at(self, address: str | None, namespace: str | None, max_concurrent: int | None) -> Worker:
        """The worker to run, for `kagzi worker` and `kagzi dev`. None keeps the setting of the module."""
        worker = self.worker or Worker(workflows=self.workflows)
        if address is not None:
            worker = worker.at(address)
        if namespace is not None:
            worker = worker.namespace(namespace)
        return worker if max_concurrent is None else worker.max_concurrent(max_concurrent)


def parse_target(text: str) -> Target:
    """Raises UsageError for text that is neither an existing file (MissingTarget) nor a dotted name."""
    where, _, attribute = text.partition(":")
    if attribute and not attribute.isidentifier():
        raise click.UsageError(f"{text!r}: {attribute!r} is not a name. Write MODULE:ATTRIBUTE or FILE:ATTRIBUTE.")
    path = Path(where)
    if path.suffix == ".py" or "/" in where or path.is_file():
        if not path.is_file():
            raise MissingTarget(f"{where} does not exist. Give a Python file, or a module as in app.flows.")
        return Target(path.stem, attribute, path.resolve())
    if not all(part.isidentifier() for part in where.split(".")):
        raise click.UsageError(f"{where!r} is neither a file nor a module. Write app.py, or app.flows.")
    return Target(where, attribute, None)


class MissingTarget(click.UsageError):
    """The file or module does not exist."""


class LoadError(Exception):
    """The user's module cannot be loaded. The text is its traceback, beginning in the user's code."""


def load(target: Target) -> Loaded:
    """Imports the module and finds its workflows. Raises LoadError, MissingTarget, and UsageError for a module with
    nothing to serve."""
    module = _imported(target)
    if target.attribute:
        return _loaded(target, {target.attribute: _attribute(module, target)})
    return _loaded(target, vars(module))


def load_module(target: Target) -> ModuleType:
    """Imports the module. Raises LoadError, UsageError."""
    return _imported(target)


def load_value(target: Target) -> object:
    """Imports the module and returns its attribute. Raises LoadError, UsageError."""
    return _attribute(_imported(target), target)


def _imported(target: Target) -> ModuleType:
    try:
        return _import(target)
    except (KeyboardInterrupt, click.UsageError):
        raise
    except BaseException as error:
        if target.path is None and isinstance(error, ModuleNotFoundError) and _is_missing(target.module, error.name):
            raise MissingTarget(_missing_text(target.module)) from error
        raise LoadError(_own_traceback(error)) from error  # a module may raise anything, SystemExit included


def _is_missing(module: str, name: str | None) -> bool:
    """Whether the missing module is the target itself, or a package that contains it."""
    return name is not None and f"{module}.".startswith(f"{name}.")


def _missing_text(module: str) -> str:
    path = module.replace(".", "/")
    return (
        f"There is no module {module!r}: neither {path}.py nor {path}/ is in {Path.cwd()}, and no such module is "
        "installed. Give a Python file, as in app.py, or a module, as in app.flows."
    )


def _import(target: Target) -> ModuleType:
    if target.path is None:
        _let_import_from(Path.cwd())
        return importlib.import_module(target.module)
    package = _package_of(target.path)
    if package is not None:  # imported by its full name, so that relative imports work
        root, name = package
        _let_import_from(root)
        return importlib.import_module(name)
    _let_import_from(target.path.parent)
    # By its path and not by its name: a file may have the name of an installed module.
    spec = importlib.util.spec_from_file_location(target.module, target.path)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"{target.path} cannot be imported. Give a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[target.module] = module  # before it runs, as dataclasses and pydantic look up their module
    spec.loader.exec_module(module)
    return module


def _package_of(path: Path) -> tuple[Path, str] | None:
    """Root directory and full name of a file in a package."""
    names = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return (folder, ".".join(names)) if len(names) > 1 else None


def _let_import_from(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _own_traceback(error: BaseException) -> str:
    """Only the user's frames, without those of the importer and Kagzi."""
    ours = f"{Path(__file__).parents[2]}/"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename and not frame.filename.startswith(ours)]
    return "".join([*traceback.format_list(own), *traceback.format_exception_only(error), _import_hint(error)]).rstrip()


def _import_hint(error: BaseException) -> str:
    if isinstance(error, ImportError) and "no known parent package" in str(error):
        return (
            "A relative import works only in a package: add an empty __init__.py beside the file, or write "
            "`from helpers import ...` instead of `from .helpers import ...`."
        )
    return ""


def _attribute(module: ModuleType, target: Target) -> object:
    try:
        return getattr(module, target.attribute)
    except AttributeError:
        raise click.UsageError(f"{target} does not exist: the module has no {target.attribute!r}.") from None


def _is_workflow(value: object) -> TypeGuard[Workflow[Any, Any]]:
    return isinstance(value, Workflow)


def _loaded(target: Target, names: Mapping[str, object]) -> Loaded:
    workers = {name: value for name, value in names.items() if isinstance(value, Worker)}
    workflows: dict[str, Workflow[Any, Any]] = {}
    for value in names.values():
        if _is_workflow(value) and workflows.setdefault(f"{value.name}@{value.version}", value) is not value:
            raise click.UsageError(
                f"{target} has two workflows with the name {value.name!r} and the version {value.version}. Give one of "
                f'them another name, @workflow("..."), or another version, @workflow({value.name!r}, version=2).'
            )
    # With several workers and no name, use the one called `worker`.
    worker = workers.get("worker") or (next(iter(workers.values())) if len(workers) == 1 else None)
    if worker is not None:
        return Loaded(worker, worker.registered)
    if not workflows:
        raise click.UsageError(
            f"{target} has no workflow and no Worker. Decorate a function: @workflow async def hello(ctx, name): ..."
        )
    return Loaded(None, tuple(workflows.values()))

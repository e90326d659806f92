"""Lints files: all their workflows, and the functions of the project that they call."""

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

from ..workflow.workflow import Workflow
from . import annotations, names
from .flow import Linter
from .report import Finding, about_suppressions
from .rules import UNSERIALISABLE
from .sources import Sources
from .values import Function, Source
from .workflows import LocatedWorkflow, workflows_in

_RUNS_AT_IMPORT = ("asyncio.run", "anyio.run", "uvloop.run")


class NotImported(NamedTuple):
    """A file whose annotations could not be checked."""

    file: str
    reason: str


class Linted(NamedTuple):
    findings: tuple[Finding, ...]
    files: int
    workflows: int
    not_imported: tuple[NotImported, ...]


class UnreadableError(Exception):
    """A file that is not Python, or cannot be read. The text names it."""


def lint(paths: Iterable[Path], load: Callable[[Path], None] | None) -> Linted:
    """`load` imports the module in a file, and raises whatever the module raises. Without it, nothing is imported and
    annotations are not checked. Raises UnreadableError."""
    sources = Sources()
    linter = Linter(sources)
    files = [_source(path, sources) for path in paths]
    located = [(source, workflows_in(source)) for source in files]
    for _, workflows in located:
        for workflow in workflows:
            linter.workflow(workflow.function, workflow.name)
    not_imported = [] if load is None else list(_check_annotations(located, linter, load))
    unchecked = {source.file for source in files} if load is None else {each.file for each in not_imported}
    findings = linter.report.findings()
    for source in files:
        skipped = {UNSERIALISABLE.name} if source.file in unchecked else set[str]()
        findings += about_suppressions(source, _lines_read(source, linter), skipped)
    findings.sort(key=lambda each: (each.file, each.line, each.column, each.rule))
    return Linted(tuple(findings), len(files), sum(len(each) for _, each in located), tuple(not_imported))


def _source(path: Path, sources: Sources) -> Source:
    try:
        return sources.of_path(path)
    except SyntaxError as error:
        raise UnreadableError(f"{path}:{error.lineno or 0}: {error.msg}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _check_annotations(
    located: Iterable[tuple[Source, list[LocatedWorkflow]]], linter: Linter, load: Callable[[Path], None]
) -> Iterator[NotImported]:
    for source, workflows in located:
        if not workflows:
            continue
        line = _program_at(source)
        if line:
            yield NotImported(source.file, f"it runs a program when it is imported, at line {line}")
            continue
        try:
            load(Path(source.file))
        except Exception as error:  # noqa: BLE001  users' modules may raise anything
            yield NotImported(source.file, str(error) or repr(error))
            continue
        for workflow in workflows:
            known = annotations.loaded(workflow.function)
            if isinstance(known, Workflow):
                annotations.check_workflow(workflow.function, cast("Workflow[object, object]", known), linter.report)
        annotations.check_signals(source, linter.report)
        for step in tuple(linter.steps.values()):
            annotations.check_step(step, linter.report)


def _program_at(source: Source) -> int:
    """The line at which an import would run a program: asyncio.run() outside of functions and conditions."""
    for statement in source.tree.body:
        call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        if not isinstance(call, ast.Call):
            continue
        path = names.resolve(call.func, source.env).plain_path
        if path in _RUNS_AT_IMPORT or path.endswith("Worker.serve"):
            return statement.lineno
    return 0


def _lines_read(source: Source, linter: Linter) -> set[int]:
    """Lines that are known to be workflow code or steps."""
    known: list[Function] = [*linter.functions.values(), *(each.function for each in linter.steps.values())]
    known += [each.function for each in source.env.names.values() if each.function and names.is_step(each.function)]
    lines: set[int] = set()
    for function in known:
        if function.source is source:
            lines.update(range(function.node.lineno, (function.node.end_lineno or function.node.lineno) + 1))
    return lines

"""`kagzi lint`."""

import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ...core.text.plurals import counted
from ...sdk.lint.kagzi_warning import KagziWarning
from ...sdk.lint.linting import Linted, UnreadableError
from ...sdk.lint.linting import lint as lint_files
from ...sdk.lint.report import Finding
from ...sdk.lint.sources import module_name
from ..console import put, say, warn
from ..exits import Exit
from ..output import Output, json_output

_NOT_OURS = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__", "venv"})


@click.command()
@click.argument("targets", metavar="MODULE|FILE|DIRECTORY...", nargs=-1, required=True)
@click.option(
    "--import/--no-import",
    "imports",
    default=True,
    help="Import the files with workflows, to check their annotations.  [default: import]",
)
@json_output
def lint(*, targets: Sequence[str], imports: bool) -> Output:
    """Find code in workflows that a replay would not survive.

    Reads workflows and what they call in the project: clocks, random values, blocking and network calls outside of
    steps, calls that are not awaited, and more. A comment suppresses a rule for its line, with a reason:

    \b
        began = time.time()  # kagzi: ignore[clock] only logged

    Exit code 0: nothing found; 1: findings; 2: a target that does not exist, or is not Python.
    """
    files = [file for target in targets for file in _files(target)]
    try:
        linted = lint_files(dict.fromkeys(files), _load if imports else None)
    except UnreadableError as error:
        raise click.UsageError(str(error)) from error
    for each in linted.not_imported:
        warn(f"{_shown(each.file)} was not imported, so its annotations were not checked: {each.reason}")
    return Output(_view(linted), lambda: _show(linted), Exit.FAILED if linted.findings else Exit.OK)


def _files(target: str) -> list[Path]:
    """Raises UsageError for a path that does not exist, and for a directory without Python files."""
    path = Path(target)
    if path.is_file():
        return [path.resolve()]
    if not path.is_dir():
        located = None if path.suffix == ".py" or "/" in target else _module(target)
        if located is None:
            raise click.UsageError(
                f"{target} is neither a file nor a directory nor a module. Write app.py, or app.flows."
            )
        if located.name != "__init__.py":
            return [located]
        path = located.parent
    files = sorted(_python_in(path.resolve()))
    if not files:
        raise click.UsageError(f"{target} has no Python files.")
    return files


def _module(name: str) -> Path | None:
    """The file of a module, without importing it or its packages."""
    relative = Path(*name.split("."))
    for root in dict.fromkeys((Path.cwd(), *map(Path, sys.path))):
        for path in (root / relative / "__init__.py", (root / relative).with_suffix(".py")):
            if path.is_file():
                return path.resolve()
    return None


def _python_in(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        if path.is_dir():
            if not path.name.startswith(".") and path.name not in _NOT_OURS and not (path / "pyvenv.cfg").exists():
                yield from _python_in(path)
        elif path.suffix == ".py":
            yield path


def _load(file: Path) -> None:
    """Imports a file like `kagzi worker`. Its output goes to stderr, and its Worker objects do not print warnings."""
    from ..operate.targets import Target, load_module

    _, name = module_name(file)
    if getattr(sys.modules.get(name), "__file__", None) == str(file):
        return
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore", KagziWarning)
        load_module(Target(file.stem, "", file))


def _view(linted: Linted) -> dict[str, Any]:
    return {
        "files": linted.files,
        "workflows": linted.workflows,
        "findings": [_finding(each) for each in linted.findings],
        "not_imported": [{"file": _shown(each.file), "reason": each.reason} for each in linted.not_imported],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    callers = [{**call._asdict(), "file": _shown(call.file)} for call in finding.called_from]
    return {**finding._asdict(), "file": _shown(finding.file), "called_from": callers}


def _show(linted: Linted) -> None:
    for each in linted.findings:
        shown = each._replace(called_from=tuple(call._replace(file=_shown(call.file)) for call in each.called_from))
        put(f"{_shown(each.file)}:{each.line}:{each.column}: {each.rule}: {shown.advice}")
    read = f"{counted(linted.workflows, 'workflow')} in {counted(linted.files, 'file')}"
    say(f"{counted(len(linted.findings), 'finding')} in {read}" if linted.findings else f"nothing found in {read}")


def _shown(file: str) -> str:
    """The path relative to the working directory, if it is inside."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file

"""Programs with markers: `# <- clock` at the end of a line says that lint finds exactly this there."""

import re
from pathlib import Path

from kagzi.sdk.lint.linting import lint

HEAD = "from kagzi import ChildHandle, Context, Kagzi, Retry, Signal, Worker, Workflow, step, workflow\n"
_MARK = re.compile(r"# <- (\S+)")


def markers(text: str) -> list[tuple[int, str]]:
    return [(number, rule) for number, line in enumerate(text.splitlines(), 1) for rule in sorted(_MARK.findall(line))]


def linted(text: str, directory: Path, name: str = "flow.py") -> list[tuple[int, str]]:
    """Lines and rules of what is found in a program."""
    (directory / name).write_text(text)
    return [(each.line, each.rule) for each in lint([directory / name], None).findings]


def check(program: str, directory: Path) -> None:
    text = HEAD + program
    assert linted(text, directory) == markers(text)


def in_workflow(body: str, before: str = "") -> str:
    """A program whose workflow has this body."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.strip("\n").splitlines())
    return f"{before}\n@workflow\nasync def flow(ctx: Context, data: str) -> object:\n{lines}"

"""`kagzi export --pytest`: a recorded run as a test."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from ...core.text.commands import quoted
from ...core.text.plurals import counted
from ..console import hint, say, warn
from ..exits import Exit, Stop
from ..options import Server
from .code import load_code
from .recordings import history_of

if TYPE_CHECKING:
    from pathlib import Path

    from ...sdk.workflow.workflow import Workflow
    from ...testing.replay.history import History
    from ...testing.to_pytest.writer import WrittenTest

LARGEST_BYTES = 256 * 1024
"""The largest test: a longer one would be unreadable."""


def test_of(run: str | None, file: Path | None, code: str | None, server: Server) -> bytes:
    """The source of the test, for a run of the server or in a file of `kagzi export`. Raises Stop, UsageError."""
    if code is None:
        raise click.UsageError("--pytest needs --code MODULE: the module or file that has the workflow.")
    loaded = load_code(code, server)
    history = history_of(run, file, loaded.server, loaded.codec)
    source = [] if file is None else ["--from", str(file)]
    command = ["kagzi", "export", *([run] if run else []), *source, "--pytest", "--code", code]
    written = _written(history, loaded.workflows, shlex.join(command))
    data = written.source.encode()
    if len(data) > LARGEST_BYTES:
        raise Stop(
            Exit.REFUSED,
            f"the test would have {len(data):,} bytes; the limit is {LARGEST_BYTES:,}",
            _remedy(run, history, file),
        )
    say(f"{written.test}: {counted(len(history.steps), 'recorded step')}, with values in plain text")
    problem = _problem(written)
    if problem:
        warn(f"the test fails with the code at hand: {problem}")
        hint("it passes once the code fits the run again; kagzi replay shows more")
    return data


def _remedy(run: str | None, history: History, file: Path | None) -> str:
    """What to do instead of writing a test that is too long."""
    if file is None:
        loaded, first = (
            '"run.jsonl"',
            f"keep the history in a file: kagzi export {quoted(run)} -o run.jsonl. Then a test",
        )
    else:
        loaded, first = f'"{file}", "{history.run_id}"', "let a test read the file: it"
    return f"{first} replays it with kagzi.testing: await Replayer([workflow]).run(History.load({loaded}))"


def _written(history: History, workflows: tuple[Workflow[Any, Any], ...], command: str) -> WrittenTest:
    from ...testing.to_pytest.calls import replay_seeing
    from ...testing.to_pytest.writer import write_test

    _, seen = replay_seeing(history, workflows)  # raises NotFound if the workflow does not exist
    workflow = next(
        each for each in workflows if each.name == history.workflow_type and each.version == history.version
    )
    return write_test(history, workflow, seen, command)


def _problem(file: WrittenTest) -> str:
    """Why the test does not pass here; empty if it does. So users know before they run it."""
    scope: dict[str, Any] = {}
    try:
        exec(compile(file.source, file.test, "exec"), scope)  # noqa: S102  the source was just generated
        scope[file.test]()
    except Exception as error:  # noqa: BLE001  it runs user code
        return str(error).partition("\n")[0] or type(error).__name__
    return ""

"""What commands print, word for word: help, typical calls, and mistakes. See transcripts.py for updating the files."""

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kagzi.cli.main import COMMANDS, kagzi
from tests.cli.conftest import Installation
from tests.cli.test_verbs import has_status, until
from tests.cli.transcripts import UPDATE, Transcript, check, names
from tests.support.kagzi_inline import kagzi_inline


def commands() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every command by the name of its file, with the words that lead to it."""
    context = click.Context(kagzi)
    for name in COMMANDS:
        command = kagzi.get_command(context, name)
        yield name, (name,)
        if isinstance(command, click.Group):
            yield from ((name, (name, verb)) for verb in command.commands)


def test_help() -> None:
    files: dict[str, Transcript] = {"kagzi": Transcript(kagzi_inline)}
    files["kagzi"].call("--help")
    for file, words in commands():
        files.setdefault(file, Transcript(kagzi_inline)).call(*words, "--help")
    for file, transcript in files.items():
        check(f"help/{file}", transcript.plain())
    if not os.environ.get(UPDATE):
        assert names("help") == sorted(files), "a file belongs to no command"


def test_every_parameter_is_described() -> None:
    """In one style: a sentence with a full stop; defaults and variables follow in brackets."""
    context = click.Context(kagzi)
    poor: list[str] = []
    for _, words in commands():
        command: click.Command | None = kagzi
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(context, word)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                text = (parameter.help or "").split("  [")[0]
                if not text[:1].isupper() or not text.endswith("."):
                    poor.append(f"{' '.join(words)} {parameter.opts[0]}: {text!r}")
    assert poor == []


@pytest.fixture
def transcript(installation: Installation) -> Transcript:
    return Transcript(installation.run)


def test_runs(installation: Installation, transcript: Transcript) -> None:
    call = transcript.call
    call("start", "echo", "user=ada", "total:=9.5", "--id", "golden", "--label", "golden=1", "--wait")
    call("start", "fails", "--id", "golden-failed", "--label", "golden=1", "--wait")
    call("start", "sleeps", "1h", "--id", "golden-sleeper", "--wait", "--timeout", "1ms")
    until(installation, "golden-sleeper", has_status("sleeping"))
    call("start", "sleeps", "1h", "--id", "golden-sleeper")
    call("get", "golden", "--steps")
    call("get", "golden-failed", "--steps")
    call("explain", "golden-failed")
    call("list", "--label", "golden=1")
    call("list", "--label", "golden=none")
    call("count", "--label", "golden=1")
    call("tail", "golden")
    call("start", "approval", "40", "--id", "golden-waits", "--label", "golden=1")
    until(installation, "golden-waits", has_status("sleeping"))
    call("explain", "golden-waits")
    call("pause", "golden-waits", "--reason", "lunch")
    call("resume", "golden-waits")
    call("signal", "golden-waits", "decision", "by=ada")
    until(installation, "golden-waits", has_status("completed"))
    call("cancel", "golden-waits")
    call("cancel", "--label", "golden=1", "--status", "failed")
    call("delete", "--label", "golden=1")
    call("delete", "--label", "golden=none")
    call("delete", "--label", "golden=1", "--yes")
    call("terminate", "golden-sleeper")
    check("runs", transcript.masked())


def test_groups(installation: Installation, transcript: Transcript) -> None:
    call = transcript.call
    namespace = ("--namespace", "golden")
    for group in ("bulk", "schedule", "workers", "workflows", "versions"):
        call(group, *namespace)
        call(group, "--json", *namespace)
    installation.run("start", "echo", "1", "--version", "2", *namespace)
    call("workers", "--status", "draining")
    call("workflows", "limit", "echo", "--max-running", "5", "--when-full", "cancel_oldest")
    call("workflows", "limit", "echo", "--max-running", "none", "--when-full", "queue", "--json")
    call("workflows", "depth", *namespace)
    call("versions", "list", "echo")
    call("namespaces", "create", "golden-limited", "--max-open-runs", "1", "--retention", "failed=90d")
    call("namespaces")
    once_an_hour = ("--every", "1h", "--overlap", "buffer-one", "--catchup", "1", "--paused")
    call("schedule", "create", "nightly", "echo", *once_an_hour)
    call("schedule", "get", "nightly")
    call("schedule")
    call("schedule", "delete", "nightly", "--yes")
    check("groups", transcript.masked())


MISTAKES: tuple[tuple[str, ...], ...] = (
    ("strat",),
    ("workers", "lst"),
    ("get",),
    ("get", "golden", "extra"),
    ("get", "no-such-run"),
    ("get", "golden", "--verbose"),
    ("list", "--status", "done"),
    ("list", "--since", "2"),
    ("start", "echo", "{user: ada}"),
    ("start", "echo", "total:=9,5"),
    ("start", "echo", "hello", "world"),
    ("start", "echo", "--timeout", "1s"),
    ("start", "echo", "--on-conflict", "ignore"),
    ("start", "echo", "--priority", "1000"),
    ("cancel",),
    ("cancel", "golden", "--status", "failed"),
    ("retry", "golden", "--from-step", "no-such-step"),
    ("fork", "golden", "--output", "echo={a"),
    ("workflows", "limit", "echo"),
    ("workflows", "limit", "echo", "--rate", "-1"),
    ("workflows", "show", "no-such-type"),
    ("schedule", "create", "x", "echo"),
    ("schedule", "create", "x", "echo", "--every", "100ms"),
    ("schedule", "create", "x", "echo", "--cron", "0 0 30 2 *"),
    ("schedule", "create", "x", "echo", "--every", "1h", "--overlap", "never"),
    ("namespaces", "create", "x", "--max-open-runs", "-1"),
    ("namespaces", "delete", "default"),
    ("workers", "get", "no-such-worker"),
    ("bulk", "get", "no-such-operation"),
    ("db",),
)


def test_mistakes(installation: Installation, transcript: Transcript) -> None:
    installation.run("start", "echo", "1", "--id", "golden", "--wait")
    for arguments in MISTAKES:
        transcript.call(*arguments)
    check("mistakes", transcript.masked())


def test_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    transcript = Transcript(kagzi_inline)
    for arguments in (("status",), ("migrate",), ("status",), ("partition", "--parts", "4")):
        transcript.call("db", *arguments, "--db", "sqlite:///golden.db")
    transcript.call("list", "--address", "sqlite:///typo.db")
    check("database", transcript.masked())

"""The face of the program: help that comes at once and says what is there."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kagzi import __version__
from kagzi.cli.main import COMMANDS, kagzi
from tests.support.kagzi_inline import kagzi_inline as run
from tests.support.kagzi_process import clean_environment

HELP_S = 0.250
IMPORT_S = 0.100
ALL_NAMES_S = 0.300


def cpu_s(*arguments: str) -> float:
    """CPU seconds of a Python with these arguments."""
    process = subprocess.Popen([sys.executable, *arguments], env=clean_environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def costs_at_most(limit_s: float, *arguments: str, beyond: tuple[str, ...] | None = None, tries: int = 12) -> None:
    """One try is enough: a busy machine makes it dearer, never cheaper."""
    used: list[float] = []
    bare: list[float] = [] if beyond else [0.0]
    for _ in range(tries):
        if beyond:
            bare.append(cpu_s(*beyond))
        used.append(cpu_s(*arguments))
        if min(used) - min(bare) < limit_s:
            return
    pytest.fail(f"{arguments} took {used} s of CPU, and {bare} are not its own")


def test_help_comes_at_once() -> None:
    costs_at_most(HELP_S, "-m", "kagzi", "--help")


def test_importing_kagzi_costs_little_beyond_python_and_grpc() -> None:
    bare = ("-c", "import grpc, grpc.aio")
    costs_at_most(IMPORT_S, "-c", "import grpc, grpc.aio, kagzi", beyond=bare)
    # Names are loaded when first used: a program pays for those it uses, here for all of a worker's.
    script = "import grpc, grpc.aio; from kagzi import Context, Kagzi, Retry, Worker, current_step, step, workflow"
    costs_at_most(ALL_NAMES_S, "-c", script, beyond=bare)


def test_help_imports_neither_grpc_nor_drivers() -> None:
    script = (
        "import sys; from kagzi.cli.main import run; run(['--help']); "
        "print([name for name in ('grpc', 'asyncpg', 'rich', 'uvicorn', 'google.protobuf') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=clean_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_is_described_alike_in_both_places(name: str) -> None:
    context = click.Context(kagzi)
    command = kagzi.get_command(context, name)
    assert command is not None
    assert command.help is not None
    assert command.help.splitlines()[0] == COMMANDS[name][2]


OF_ALL_CLIENTS = ("--tls-ca", "--tls-cert", "--tls-key", "--codec")  # described once, at the beginning


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
    missing: list[str] = []
    context = click.Context(kagzi)
    for name in COMMANDS:
        command = kagzi.get_command(context, name)
        assert command is not None
        if f"## kagzi {name}" not in text:
            missing.append(name)
            continue
        section = text.split(f"## kagzi {name}", 1)[1].split("\n## ", 1)[0]
        if name not in ("dev", "server"):
            section += " ".join(flag for flag in OF_ALL_CLIENTS if flag in text.split("\n## ", 1)[0])
        commands = list(command.commands.values()) if isinstance(command, click.Group) else [command]
        for each in commands:
            for parameter in each.params:
                if isinstance(parameter, click.Option):
                    missing += [f"{name} {flag}" for flag in parameter.opts if len(flag) > 2 and flag not in section]
    assert missing == []


def test_an_unknown_command_is_a_usage_error() -> None:
    done = run("strat")
    assert done.returncode == 2
    assert done.stderr == "error: no such command 'strat'. Did you mean 'stats' or 'start'?\nhint: see kagzi --help\n"
    assert done.stdout == ""


def test_version_is_data() -> None:
    done = run("version")
    assert done.returncode == 0
    assert done.stdout.startswith("kagzi 0.")
    short = run("--version")
    assert (short.returncode, short.stdout) == (0, f"kagzi {__version__}\n")

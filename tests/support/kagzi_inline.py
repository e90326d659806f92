"""`kagzi` in this process: what a command prints and its exit code, without the half second that a process costs."""

import os
import subprocess
import sys
from collections.abc import Mapping

from click.testing import CliRunner

from kagzi.cli.main import run


def kagzi_inline(
    *arguments: str, stdin: str | bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `main` would. Not for commands that serve, or that signals end."""
    stdin_bytes = stdin.encode() if isinstance(stdin, str) else stdin
    ours = (name for name in os.environ if name.startswith("KAGZI_") or name == "NO_COLOR")
    environment: dict[str, str | None] = {**dict.fromkeys(ours), **(env or {})}
    with CliRunner().isolation(stdin_bytes, env=environment) as (out, err, _):
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        return subprocess.CompletedProcess(arguments, code, out.getvalue().decode(), err.getvalue().decode())

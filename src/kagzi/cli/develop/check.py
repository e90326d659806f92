"""`kagzi check`: are the open runs of a server compatible with the code that is about to be deployed?"""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from ...core.text.commands import quoted
from ...core.text.plurals import counted
from ..console import hint, put, put_json, say
from ..exits import Exit
from ..options import Server, export_file, same_server, server_options
from .code import Code, load_code
from .findings import FAULTS, Entry, Finding, Findings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ...sdk.client.client import Kagzi
    from .checking import Checker, RecordedRun

_REDRAW_S = 0.2
_LINE_EVERY_S = 5.0


@click.command()
@click.argument("target", metavar="MODULE[:ATTR]|FILE[:ATTR]")
@click.option(
    "--sample",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Check at most N runs of each workflow and version, chosen at random.  [default: all]",
)
@export_file("Check the runs in this file of kagzi export, instead of the open runs of a server.")
@click.option(
    "--strict", is_flag=True, help="Fail as well if runs are pinned to a version of a workflow that MODULE lacks."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--jsonl", is_flag=True, help="Print JSON, one run that does not fit per line, as they are found.")
@server_options
def check(
    *,
    target: str,
    sample: int | None,
    file: Path | None,
    strict: bool,
    as_json: bool,
    jsonl: bool,
    server: Server,
) -> int:
    """Check that open runs fit the code that you are about to deploy.

    \b
    kagzi check app.py                       all open runs of the server
    kagzi check app.flows --sample 50        at most 50 of each workflow and version
    kagzi export --all > runs.jsonl
    kagzi check app.py --from runs.jsonl     without a server

    Every run is replayed against the code, here, with its recorded results: no step is executed, and nothing changes on
    the server. For runs that would diverge you see where, and what to write. Exit code: 0 if all fit; 1 if some
    diverge, would fail at once, or cannot be checked; 2 for wrong options; 4 without a connection.
    """
    if as_json and jsonl:
        raise click.UsageError("give --json or --jsonl, not both.")
    code = load_code(target, server)
    findings = Findings()
    report = _Report(findings, jsonl=jsonl)
    if file is None:
        code.server.ask(lambda client: _check_server(client, code, sample, report))
    else:
        _run(_check_file(file, code, sample, report))
    if as_json:
        put_json({"code": target, **findings.view()})
    elif not jsonl:
        for entry in findings.entries():
            _put_entry(entry, target)
    what = counted(findings.seen, "run" if file else "open run")
    say(f"{what} checked against {target}: {findings.summary()}")
    failed: tuple[Any, ...] = (*FAULTS, "no_version") if strict else FAULTS
    return Exit.FAILED if findings.count(*failed) else Exit.OK


async def _check_server(client: Kagzi, code: Code, sample: int | None, report: _Report) -> None:
    from ...system import SystemRng
    from .checking import OPEN, Checker, open_runs

    if sample is None:
        count = await client.count(status=OPEN)
        report.total = None if count.capped else int(count)
    await _check(open_runs(client, sample, SystemRng()), Checker(code), report)


async def _check_file(file: Path, code: Code, sample: int | None, report: _Report) -> None:
    from ...system import SystemRng
    from .checking import Checker, runs_in

    await _check(runs_in(file, code, sample, SystemRng()), Checker(code), report)


async def _check(runs: AsyncIterator[RecordedRun], checker: Checker, report: _Report) -> None:
    from .checking import check_all

    try:
        await check_all(runs, checker, report.findings, report.seen)
    finally:
        report.close()


def _run(work: Any) -> None:
    import asyncio

    asyncio.run(work)


class _Report:
    """Shows progress on stderr: a line that is redrawn on a terminal, otherwise a line every few seconds."""

    def __init__(self, findings: Findings, *, jsonl: bool) -> None:
        self.findings = findings
        self.total: int | None = None
        self._jsonl = jsonl
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = monotonic()
        self._drawn = False

    def seen(self, run: RecordedRun, finding: Finding | None) -> None:
        if self._jsonl and finding is not None:
            put_json({"run_id": run.run_id, **finding.view()}, lines=True)
        if monotonic() - self._shown_at < (_REDRAW_S if self._is_terminal else _LINE_EVERY_S):
            return
        self._shown_at = monotonic()
        of = f" of {self.total}" if self.total is not None else ""
        text = f"{self.findings.seen}{of} runs checked"
        if self._is_terminal:
            self._drawn = True
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
        else:
            say(text)

    def close(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[K", nl=False, err=True)


def _put_entry(entry: Entry, target: str) -> None:
    finding = entry.finding
    what = f"{finding.workflow} version {finding.version}" if finding.version else finding.workflow
    runs = counted(entry.count, "run")
    colour = "red" if finding.verdict in FAULTS else "yellow"
    at = f" at {finding.place}" if finding.place else ""
    verbs = {"diverges": "diverges", "fails": "would fail at once", "unchecked": "could not be checked"}
    if entry.count != 1:
        verbs["diverges"] = "diverge"
    verbs["new_timeout"] = "fits and takes a new timeout" if entry.count == 1 else "fit and take a new timeout"
    verb = verbs.get(finding.verdict, "not checked")
    put(f"{what}: {click.style(f'{runs} {verb}{at}', fg=colour)}")
    if finding.verdict == "diverges":
        put(f"  the history has {finding.recorded}, {finding.actual}")
    else:
        put(f"  {finding.message}")
    more = f" and {entry.count - len(entry.run_ids)} more" if entry.count > len(entry.run_ids) else ""
    put(f"  runs: {', '.join(entry.run_ids)}{more}")
    if finding.patch:
        put("  write, so that runs that began before the change keep the old way:")
        for line in finding.patch.rstrip("\n").splitlines():
            put(f"      {line}")
    if finding.verdict == "diverges":
        hint(
            f"look at one in the debugger: kagzi replay {quoted(entry.run_ids[0])} "
            f"--code {quoted(target)} --pdb{same_server()}"
        )

"""`kagzi adopt`: continues a stuck run with repaired code, on that build only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ...core.text.commands import quoted
from ...core.text.plurals import counted
from ..console import hint, put, put_table, say
from ..exits import Exit, Stop
from ..options import Server, same_server
from ..output import Output, server_command
from .code import Code, load_code, short_path

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run_records import RunInfo
    from ...testing.replay.history import History
    from ...testing.replay.result import Replay

_STEPS_SHOWN = 20


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--code", "target", metavar="FILE|MODULE", help="The repaired code, as you give it to kagzi worker.")
@click.option(
    "--build-id",
    metavar="ID",
    help="The build id of its workers, if you set one.  [default: a hash of the code]",
)
@click.option("--any-build", is_flag=True, help="Remove the pin: every worker may take the run again.")
@click.option("--reason", default="", help="Reason, kept in the audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@server_command
def adopt(
    *,
    run: str,
    target: str | None,
    build_id: str | None,
    any_build: bool,
    reason: str,
    yes: bool,
    server: Server,
) -> Output:
    """Let one stuck run continue with repaired code.

    \b
    kagzi adopt RUN --code app.py       replay RUN against the code, show the difference, and pin it
    kagzi worker app.py                 a worker with the same code takes it

    RUN is a run id, the beginning of one, or a workflow id (its latest run). It is replayed here: no step is executed.
    If the code does not fit its history, you see where, and nothing changes (exit code 1). If it fits, only workers
    with exactly this code (their build id) may take the run from then on; other runs, and other workers, are not
    affected. kagzi audit shows who adopted what.
    """
    if any_build == (target is not None) or (any_build and build_id is not None):
        raise click.UsageError("give --code FILE, or --any-build alone to let every worker take the run again.")
    if target is None:
        return server.ask(lambda client: _release(client, run, reason))
    code = load_code(target, server)
    build = build_id if build_id is not None else code.build_id
    if not build:
        raise click.UsageError(f"no build id can be made from {target}. Name that of its workers: --build-id ID.")
    return code.server.ask(lambda client: _adopt(client, run, code, build, reason, yes=yes))


async def _release(client: Kagzi, name: str, reason: str) -> Output:
    from ..runs.find import find_run

    run = await find_run(client, name)
    status = await client.versions.adopt(run.id, None, reason=reason)
    view = {"run_id": run.id, "pinned_build": None, "status": str(status)}
    return Output(view, lambda: say(f"{run.id} is {status}: every worker may take it"))


async def _adopt(client: Kagzi, name: str, code: Code, build_id: str, reason: str, *, yes: bool) -> Output:
    from ...testing.replay.history import History
    from ..runs.find import find_info

    run, info = await find_info(client, name)
    _refuse(info, code)
    history = await History.fetch(client, run)
    comparison = Comparison(info, history, await _replayed(history, code), build_id)
    if comparison.replay.divergence is not None:
        stop = Stop(
            Exit.FAILED,
            f"{code.target} does not fit run {info.id} either: nothing was changed",
            "a worker with this code would pause the run at the same place. Change the code as shown, and try again",
        )
        return Output({**comparison.view(), "adopted": False}, comparison.show, Exit.FAILED, stop)
    if not yes:
        _ask(comparison)
    status = await client.versions.adopt(info.id, build_id, reason=reason)
    connected = await _workers_of(client, info, build_id)
    view = {**comparison.view(), "adopted": True, "status": str(status), "workers": connected}

    def show() -> None:
        if yes:
            comparison.show()
        say(f"{info.id} is {status}: only workers of build {build_id} may take it")
        if not connected:
            hint(f"no worker of that build is connected: kagzi worker {quoted(code.target)}{same_server()}")

    return Output(view, show)


def _refuse(info: RunInfo, code: Code) -> None:
    """Raises Stop if this code cannot adopt the run."""
    if info.status.ended:
        remedy = f"start a new run from its history: kagzi fork {quoted(info.id)}{same_server()}"
        raise Stop(Exit.REFUSED, f"run {info.id} has ended ({info.status}): only an open run can be adopted", remedy)
    versions = [str(workflow.version) for workflow in code.workflows if workflow.name == info.workflow]
    if not versions:
        names = ", ".join(sorted({workflow.name for workflow in code.workflows}))
        raise Stop(Exit.USAGE, f"{code.target} has no workflow {info.workflow!r}", f"it has: {names}")
    if info.version is not None and info.version not in versions:
        raise Stop(
            Exit.USAGE,
            f"run {info.id} is pinned to version {info.version} of {info.workflow}; {code.target} has version "
            f"{', '.join(versions)}",
            f"register the repaired code under the version of the run: @workflow(version={info.version!r})",
        )


async def _replayed(history: History, code: Code) -> Replay:
    from ...testing.replay.replayer import Replayer

    return await Replayer(code.workflows, codec=code.codec).run(history)


def _ask(comparison: Comparison) -> None:
    if not sys.stdin.isatty():
        raise Stop(Exit.USAGE, "this lets the run continue, and there is no terminal to confirm it", "add --yes")
    comparison.show()
    click.confirm(f"Let {comparison.info.id} continue with this code only?", abort=True, err=True)


async def _workers_of(client: Kagzi, info: RunInfo, build_id: str) -> list[str]:
    workers = client.workers.list(status="online", workflow=info.workflow)
    return [worker.id async for worker in workers if worker.build_id == build_id]


class Comparison(NamedTuple):
    """The recorded steps of a run, compared with what the code does."""

    info: RunInfo
    history: History
    replay: Replay
    build_id: str

    def view(self) -> dict[str, Any]:
        divergence = self.replay.divergence
        shown: dict[str, Any] = {
            "run_id": self.info.id,
            "workflow": self.info.workflow,
            "version": self.info.version,
            "was": str(self.info.status),
            "build_id": self.build_id,
            "fits": self.replay.fits,
            "steps": [
                {"step_id": step, "recorded": status, "code": where or None} for step, status, where in self._steps()
            ],
            "next": self._next(),
        }
        if divergence is not None:
            names = ("step", "recorded", "actual", "file", "line", "message", "patch")
            shown["divergence"] = {name: getattr(divergence, name) for name in names}
        return shown

    def show(self) -> None:
        """For people: the problem, the steps side by side, and the next step or a suggested fix."""
        info, divergence = self.info, self.replay.divergence
        version = f" version {info.version}" if info.version else ""
        problem = f": {info.problem.message}" if info.problem is not None else ""
        put(f"{info.id} of {info.workflow}{version} is {info.status}{problem}")
        steps = self._steps()
        left_out = max(0, len(steps) - _STEPS_SHOWN)
        if left_out:
            put(f"{counted(left_out, 'earlier step')} not shown")
        put_table(
            [
                {"recorded": step, "status": status, "this code": where or click.style("not called", fg="red")}
                for step, status, where in steps[left_out:]
            ]
        )
        if divergence is None:
            put(f"{click.style('fits', fg='green')}; next: {self._next()}")
            return
        put(f"{click.style('diverges', fg='red')} at {short_path(divergence.file)}:{divergence.line}:")
        put(f"  the history has {divergence.recorded}, {divergence.actual}")
        put("  write, for example:")
        for line in divergence.patch.rstrip("\n").splitlines():
            put(f"      {line}")

    def _steps(self) -> list[tuple[str, str, str]]:
        """Recorded steps with their status, and where this code calls them; empty: nowhere."""
        called = {step.id: f"{short_path(step.file)}:{step.line}" for step in self.replay.steps}
        return [(step.id, str(step.status), called.get(step.id, "")) for step in self.history.steps]

    def _next(self) -> str:
        replay = self.replay
        if replay.outcome == "open":
            return replay.waits_for or "it continues"
        if replay.outcome == "failed" and replay.error is not None:
            return f"it fails: {replay.error.text}"
        return {"completed": "it completes", "cancelled": "it is cancelled", "continued": "it continues as new"}.get(
            replay.outcome, ""
        )

"""`kagzi versions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...core.text.plurals import counted
from ..console import say
from ..groups import Listing
from ..options import Server
from ..output import Output, Rows, list_command, server_command
from ..views import cells, view

if TYPE_CHECKING:
    from ...sdk.client.operations.versions import VersionInfo


@click.group(cls=Listing)
def versions() -> None:
    """List, deprecate and choose versions of workflows."""


@versions.command("list")
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@list_command("version")
def list_versions(*, workflow: str | None, server: Server) -> Rows[VersionInfo]:
    """List versions with their open runs and workers."""
    records = server.ask_all(lambda client: client.versions.list(workflow))
    return Rows(records, _view, _row, "No versions. Workers register them; start one: kagzi worker MODULE")


@versions.command("set-default")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("version", metavar="[VERSION]", required=False)
@click.option("--highest", is_flag=True, help="Use the highest version that is not deprecated.")
@server_command
def set_default(*, workflow: str, version: str | None, highest: bool, server: Server) -> Output:
    """Set the version for new runs that do not ask for one."""
    if (version is None) != highest:
        raise click.UsageError("give a VERSION, or --highest.")
    record = server.ask(lambda client: client.versions.set_default(workflow, version))
    text = f"No version of {workflow} accepts new runs: all are deprecated"
    if record.is_default:
        text = f"New runs of {workflow} get version {record.version}"
    return Output(_view(record), lambda: say(text))


@versions.command()
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("version", metavar="VERSION")
@click.option("--undo", is_flag=True, help="Let it accept new runs again.")
@server_command
def deprecate(*, workflow: str, version: str, undo: bool, server: Server) -> Output:
    """Deprecate a version: it accepts no new runs. Its open runs continue."""
    record = server.ask(lambda client: client.versions.deprecate(workflow, version, undo=undo))
    text = f"Version {version} of {workflow} accepts new runs"
    if not undo:
        open_runs = counted(record.open_runs, "open run", capped=record.open_is_capped)
        text = f"Version {version} of {workflow} accepts no new runs; {open_runs} remaining"
    return Output(_view(record), lambda: say(text))


def _view(version: VersionInfo) -> dict[str, Any]:
    counts = ("open_runs", "open_is_capped", "workers", "first_seen_at")
    return view(version, "workflow", "version", "is_default", "is_set", "deprecated", *counts)


def _row(version: VersionInfo) -> dict[str, str]:
    default = "default" if version.is_set else "default (highest)"
    states = (version.is_default and default, version.deprecated and "deprecated")
    return {
        **cells(version, "workflow", "version"),
        "state": ", ".join(state for state in states if state),
        "open runs": f"{version.open_runs}{'+' if version.open_is_capped else ''}",
        **cells(version, "workers", "first_seen=first_seen_at"),
    }

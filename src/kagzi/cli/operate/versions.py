"""`kagzi versions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...core.text.plurals import counted
from ..console import put_json, put_list, say
from ..exits import Exit
from ..groups import Listing
from ..options import Server, json_option, list_options, server_options
from ..times import local_text, utc_text

if TYPE_CHECKING:
    from ...sdk.client.operations.versions import VersionInfo


@click.group(cls=Listing)
def versions() -> None:
    """List versions of workflows, set the default one, and deprecate others."""


@versions.command("list")
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@list_options("version")
@server_options
def list_versions(*, workflow: str | None, jsonl: bool, as_json: bool, server: Server) -> int:
    """List versions with their open runs and workers."""
    found = server.ask_all(lambda client: client.versions.list(workflow))
    put_list(
        found,
        _view,
        _row,
        jsonl=jsonl,
        as_json=as_json,
        empty="No versions. Workers register them; start one: kagzi worker MODULE",
    )
    return Exit.OK


@versions.command("set-default")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("version", metavar="[VERSION]", required=False)
@click.option("--highest", is_flag=True, help="Use the highest version that is not deprecated.")
@json_option
@server_options
def set_default(*, workflow: str, version: str | None, highest: bool, as_json: bool, server: Server) -> int:
    """Set the version for new runs that do not ask for one."""
    if (version is None) != highest:
        raise click.UsageError("give a VERSION, or --highest.")
    found = server.ask(lambda client: client.versions.set_default(workflow, version))
    if as_json:
        put_json(_view(found))
    elif found.is_default:
        say(f"New runs of {workflow} get version {found.version}")
    else:
        say(f"No version of {workflow} takes new runs: all are deprecated")
    return Exit.OK


@versions.command()
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("version", metavar="VERSION")
@click.option("--undo", is_flag=True, help="Let it take new runs again.")
@json_option
@server_options
def deprecate(*, workflow: str, version: str, undo: bool, as_json: bool, server: Server) -> int:
    """Deprecate a version: it takes no new runs. Those it has go on."""
    found = server.ask(lambda client: client.versions.deprecate(workflow, version, undo=undo))
    if as_json:
        put_json(_view(found))
    elif undo:
        say(f"Version {version} of {workflow} takes new runs")
    else:
        say(
            f"Version {version} of {workflow} takes no new runs; {counted(found.open_runs, 'open run', capped=found.open_is_capped)} left"
        )
    return Exit.OK


def _view(version: VersionInfo) -> dict[str, Any]:
    return {
        "workflow": version.workflow,
        "version": version.version,
        "is_default": version.is_default,
        "is_set": version.is_set,
        "deprecated": version.deprecated,
        "open_runs": version.open_runs,
        "open_is_capped": version.open_is_capped,
        "workers": version.workers,
        "first_seen_at": utc_text(version.first_seen_at),
    }


def _row(version: VersionInfo) -> dict[str, str]:
    default = "default" if version.is_set else "default (highest)"
    marks = (version.is_default and default, version.deprecated and "deprecated")
    return {
        "workflow": version.workflow,
        "version": version.version,
        "state": ", ".join(mark for mark in marks if mark),
        "open runs": _count(version),
        "workers": str(version.workers),
        "first seen": local_text(version.first_seen_at),
    }


def _count(version: VersionInfo) -> str:
    return f"{version.open_runs}{'+' if version.open_is_capped else ''}"

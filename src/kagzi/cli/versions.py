"""`kagzi versions`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .console import put_json, put_list, say
from .exits import Exit
from .options import address_options, json_option

if TYPE_CHECKING:
    from ..sdk.versions import VersionInfo, Versions

Answer = TypeVar("Answer")


@click.group()
def versions() -> None:
    """Look after versions of workflows: the default, and those that take no new runs."""


@versions.command("list")
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@click.option("--jsonl", is_flag=True, help="Print JSON, one version a line.")
@json_option
@address_options
def list_versions(
    *, workflow: str | None, jsonl: bool, as_json: bool, address: str | None, namespace: str | None
) -> int:
    """List versions, with the runs they still have to finish and the workers that serve them."""

    async def gather(versions: Versions) -> list[VersionInfo]:
        return [version async for version in versions.list(workflow)]

    found = asyncio.run(_ask(gather, address, namespace))
    put_list(
        found,
        _view,
        _row,
        jsonl=jsonl,
        as_json=as_json,
        empty="No versions: workers bring them. Start one: kagzi worker MODULE",
    )
    return Exit.OK


@versions.command("set-default")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("version", metavar="[VERSION]", required=False)
@click.option("--highest", is_flag=True, help="None is set: the highest that is not deprecated.")
@json_option
@address_options
def set_default(
    *, workflow: str, version: str | None, highest: bool, as_json: bool, address: str | None, namespace: str | None
) -> int:
    """Say which version new runs get that ask for none."""
    if (version is None) != highest:
        raise click.UsageError("Name a VERSION, or give --highest.")
    found = asyncio.run(_ask(lambda versions: versions.set_default(workflow, version), address, namespace))
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
@click.option("--undo", is_flag=True, help="It takes new runs again.")
@json_option
@address_options
def deprecate(
    *, workflow: str, version: str, undo: bool, as_json: bool, address: str | None, namespace: str | None
) -> int:
    """Let a version take no new runs. Those that are there finish."""
    found = asyncio.run(_ask(lambda versions: versions.deprecate(workflow, version, undo=undo), address, namespace))
    if as_json:
        put_json(_view(found))
    elif undo:
        say(f"Version {version} of {workflow} takes new runs")
    else:
        say(f"Version {version} of {workflow} takes no new runs; it has {_count(found)} left to finish")
    return Exit.OK


async def _ask(ask: Callable[[Versions], Awaitable[Answer]], address: str | None, namespace: str | None) -> Answer:
    from ..sdk.versions import Versions
    from .connection import connected

    async with connected(address, namespace) as server:
        return await ask(Versions(server.connection, server.namespace))


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
        "first_seen_at": version.first_seen_at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }


def _row(version: VersionInfo) -> dict[str, str]:
    default = "default" if version.is_set else "default (highest)"
    marks = (version.is_default and default, version.deprecated and "deprecated")
    return {
        "workflow": version.workflow,
        "version": version.version,
        "": ", ".join(mark for mark in marks if mark),
        "open runs": _count(version),
        "workers": str(version.workers),
        "first seen": version.first_seen_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def _count(version: VersionInfo) -> str:
    return f"{version.open_runs}{'+' if version.open_is_capped else ''}"
